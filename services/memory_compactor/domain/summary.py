"""The summary: what older exchanges asked and found, one line each, newest kept longest."""

import re
from collections.abc import Sequence

from libs.contracts.memory import Exchange
from libs.documents.sentences import sentence_spans

SUMMARY_CHARS = 1_400
FOLDED_AT_ONCE = 6
_QUESTION_CHARS = 120
_GIST_CHARS = 160
_MARKER = re.compile(r"\s*\[\d+\]")
_WRAPPING = '“”"*- \n'


def fold_into(summary: str, older: Sequence[Exchange], *, max_chars: int = SUMMARY_CHARS) -> str:
    """The summary with more exchanges in it, at most `max_chars`; its oldest lines give way.

    Exchanges without an answer (failed or cancelled) leave no line. At most `FOLDED_AT_ONCE` should
    be given at a time, so that one fold stays as cheap as the next.
    """
    lines = summary.splitlines() + [_line(exchange) for exchange in older if exchange.answer]
    while lines and len("\n".join(lines)) > max_chars:
        lines.pop(0)
    return "\n".join(lines)


def _line(exchange: Exchange) -> str:
    question = " ".join(exchange.question.split())
    return f"{_clip(question, _QUESTION_CHARS)} → {_clip(_gist(exchange.answer), _GIST_CHARS)}"


def _gist(answer: str) -> str:
    """The first sentence that says something: an introduction (ending in a colon) does not."""
    sentences = [answer[start:end] for start, end in sentence_spans(answer)]
    telling = next((s for s in sentences if not s.rstrip().endswith((":", "："))), answer)
    return " ".join(_MARKER.sub("", telling).split()).strip(_WRAPPING)


def _clip(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"
