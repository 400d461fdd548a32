"""An event as it goes onto a topic."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """A framed, keyed record; `partition` only where the sender owns the choice."""

    topic: str
    key: str
    value: bytes
    headers: dict[str, str] = field(default_factory=dict)
    partition: int | None = None
