"""Text clean-up that runs before any offset is taken, so offsets stay exact ever after."""

import re

_LINE_ENDS = re.compile(r"\r\n?|[\u0085\u2028\u2029\x0b\x0c]")
# Controls, zero-width marks (joiners stay: emoji and Indic scripts need them), soft hyphens,
# lone surrogates, non-characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufffe\uffff]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f]")
_BLANKS = re.compile(r"[ \t\u3000]+")
_EMPTY_LINES = re.compile(r"\n{3,}")

REPLACEMENT = "\ufffd"


def normalise_text(text: str) -> str:
    """Line ends become `\\n`, odd spaces a space, invisible characters go; nothing else changes."""
    text = _LINE_ENDS.sub("\n", text)
    text = _INVISIBLE.sub("", text)
    return _SURROGATES.sub(REPLACEMENT, _SPACES.sub(" ", text))


def squeeze(text: str) -> str:
    """Runs of blanks as one space, none at the ends of lines, one empty line at most."""
    lines = (_BLANKS.sub(" ", line).strip() for line in normalise_text(text).split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip("\n")


def replacement_share(text: str) -> float:
    """Share of visible characters that are U+FFFD, in [0, 1]: what decoding lost."""
    visible = sum(map(len, text.split()))
    return text.count(REPLACEMENT) / visible if visible else 0.0
