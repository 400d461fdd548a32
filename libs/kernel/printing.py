"""Text from elsewhere on terminals and in lines: what cannot be seen can do nothing there."""

import json
import unicodedata

JOINERS = "\u200c\u200d"  # Persian words and emoji families need them
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def is_hidden(char: str) -> bool:
    """Whether a character controls instead of showing: escapes, line ends, text direction.

    Bidirectional overrides hide a file's real suffix; U+009B begins a terminal's commands as ESC
    does; U+0085 and U+2028 end lines for many readers. Joiners are no such characters.
    """
    return char not in JOINERS and unicodedata.category(char) in _HIDDEN_CATEGORIES


def printable(text: str, *, keep: str = "") -> str:
    """The text without hidden characters but those in `keep`, e.g. `\\n`."""
    if text.isprintable():
        return text
    return "".join(char for char in text if char in keep or not is_hidden(char))


def escape_hidden(encoded: str) -> str:
    """JSON that says the same with its hidden characters as `\\u` escapes."""
    if encoded.isprintable():
        return encoded
    return "".join(json.dumps(c)[1:-1] if c != "\n" and is_hidden(c) else c for c in encoded)
