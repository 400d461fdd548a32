"""Budgets: how much text goes to a model, estimated without a tokenizer of its own."""

import re

from libs.documents.language import HAN

_HAN = re.compile(f"[{HAN}]")


def estimate_tokens(text: str) -> int:
    """Tokens that `text` takes in a usual vocabulary, on the high side.

    One a Chinese character, one for four other characters.
    """
    han_count = len(_HAN.findall(text))
    return han_count + (len(text) - han_count + 3) // 4


def clip(text: str, max_chars: int) -> str:
    """At most `max_chars` characters of `text`, its beginning; a cut shows as `…`."""
    return text if len(text) <= max_chars else text[: max(0, max_chars - 1)].rstrip() + "…"
