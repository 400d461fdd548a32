"""What the platform remembers of a conversation: written by the compactor, read by planning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Exchange:
    """One finished turn; `answer` is empty when the turn failed or was cancelled."""

    seq: int  # of the turn in its conversation
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class ConversationMemory:
    """Turns up to `folded_turn_seq`: the last ones verbatim, older ones in `summary`.

    `slots` are facts that the user stated, such as an order number; they stay at the head of a
    prompt whatever else is cut.
    """

    folded_turn_seq: int = 0
    window: Sequence[Exchange] = ()
    summary: str = ""
    slots: Mapping[str, str] = field(default_factory=dict)
