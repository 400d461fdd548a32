"""Which of the two languages a text is in, so that answers come in the user's own."""

import re

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_HAN = re.compile(f"[{HAN}]")
_LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


def language_of(text: str) -> str:
    """`zh` or `en`. One Chinese character weighs as much as one Latin word: names stay names.

    A text without letters of either script is taken as English.
    """
    han_count = len(_HAN.findall(text))
    return "zh" if han_count and han_count >= len(_LATIN_WORD.findall(text)) else "en"
