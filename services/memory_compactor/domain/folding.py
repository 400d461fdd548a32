"""Folding: finished exchanges become part of a conversation's memory."""

from collections.abc import Sequence

from libs.contracts.memory import ConversationMemory, Exchange
from services.memory_compactor.domain.slots import update_slots
from services.memory_compactor.domain.summary import FOLDED_AT_ONCE, fold_into
from services.memory_compactor.domain.window import split_window


def fold(
    memory: ConversationMemory, exchanges: Sequence[Exchange], *, strategy: str
) -> ConversationMemory:
    """The memory with further exchanges in it, the same for however many calls bring them in.

    Args:
        exchanges: In order, the first right after `memory.folded_turn_seq`; may be empty.
        strategy: `window` forgets what leaves the window, `summary` folds it into the summary,
            `none` keeps nothing but the position.
    """
    for exchange in exchanges:
        memory = _fold_one(memory, exchange, strategy)
    return memory


def _fold_one(memory: ConversationMemory, exchange: Exchange, strategy: str) -> ConversationMemory:
    if strategy == "none":
        return ConversationMemory(exchange.seq)
    older, window = split_window([*memory.window, exchange])
    summary = ""
    if strategy == "summary":
        summary = memory.summary
        for start in range(0, len(older), FOLDED_AT_ONCE):
            summary = fold_into(summary, older[start : start + FOLDED_AT_ONCE])
    slots = update_slots(memory.slots, [exchange])
    return ConversationMemory(exchange.seq, window, summary, slots)
