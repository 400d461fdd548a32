"""Recognising an answer in which a model says that the sources do not hold the answer."""

import re

_DECLINE = re.compile(
    r"\b(?:do(?:es)? not|don't|doesn't|did not|cannot|can't|could not|couldn't|no)\b[^.]{0,60}"
    r"\b(?:contain|mention|provide|include|say|state|specify|find|answer|information|determine)|"
    r"(?:没有|未|无法|不能|并未|不)(?:[^。]{0,12})(?:提到|提及|包含|说明|找到|提供|涉及|回答|确定|相关信息|记载)",
    re.IGNORECASE,
)
_MAX_CHARS = 400


def sounds_like_decline(text: str) -> bool:
    """Whether a short text, as a whole, says that the answer is not there."""
    return len(text) <= _MAX_CHARS and _DECLINE.search(text) is not None
