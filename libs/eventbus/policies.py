"""How messages are retried, committed, dead-lettered and held back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter between tries of one message."""

    max_attempts: int = 5  # tries in all for transient errors
    max_bug_attempts: int = 3  # tries in all for errors nobody foresaw
    base_delay_s: float = 0.5
    max_delay_s: float = 30.0


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """A run of dead letters means a bad deploy, not bad messages: stop and fail readiness."""

    max_consecutive: int = 20


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    """Offsets go out after this many finished messages or this much time."""

    max_messages: int = 500
    max_interval_s: float = 0.5


@dataclass(frozen=True, slots=True)
class FlowPolicy:
    """Bounds on work in flight. A partition over its bound is paused, never dropped."""

    max_in_flight: int = 64  # handlers suspended at once in this consumer
    max_buffered_per_partition: int = 500
    drain_timeout_s: float = 20.0
