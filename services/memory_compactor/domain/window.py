"""The window: the last exchanges of a conversation, word for word, within a budget."""

from collections.abc import Sequence

from libs.contracts.memory import Exchange

WINDOW_TURNS = 4
WINDOW_CHARS = 2_200
_CUT = " […]"


def split_window(
    exchanges: Sequence[Exchange],
    *,
    max_turns: int = WINDOW_TURNS,
    max_chars: int = WINDOW_CHARS,
) -> tuple[list[Exchange], list[Exchange]]:
    """(older, window): the newest exchanges that fit, and what is left, both oldest first.

    The newest exchange is always in the window, cut where it alone is over the budget.
    """
    window: list[Exchange] = []
    room = max_chars
    for exchange in reversed(exchanges):
        size = len(exchange.question) + len(exchange.answer)
        if window and (len(window) == max_turns or size > room):
            break
        window.insert(0, exchange if size <= room else _cut(exchange, room))
        room -= min(size, room)
    return list(exchanges[: len(exchanges) - len(window)]), window


def _cut(exchange: Exchange, max_chars: int) -> Exchange:
    question = _clip(exchange.question, max_chars // 2)
    return Exchange(exchange.seq, question, _clip(exchange.answer, max_chars - len(question)))


def _clip(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - len(_CUT)] + _CUT
