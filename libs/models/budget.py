"""Budgets: how much text goes to a model, estimated without a tokenizer of its own."""

import re
from collections.abc import Sequence

from libs.documents.language import HAN
from libs.models.ports import Message

_HAN = re.compile(f"[{HAN}]")
_MESSAGE_OVERHEAD = 4


def estimate_tokens(text: str) -> int:
    """Tokens that `text` takes in a usual vocabulary, on the high side.

    One a Chinese character, one for four other characters.
    """
    han_count = len(_HAN.findall(text))
    return han_count + (len(text) - han_count + 3) // 4


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Estimated size of a prompt."""
    return sum(estimate_tokens(m.content) + _MESSAGE_OVERHEAD for m in messages)


def clip(text: str, max_chars: int) -> str:
    """At most `max_chars` characters of `text`, its beginning; a cut shows as `…`."""
    return text if len(text) <= max_chars else text[: max(0, max_chars - 1)].rstrip() + "…"
