"""How messages are retried, committed and held back."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter between tries of one message.

    Using up the tries takes minutes; only tries made while other messages work count (see `Gate`),
    and those that failed for want of something by name, like room on the disk, never do.
    """

    max_attempts: int = 20  # tries in all for transient errors
    max_bug_attempts: int = 3  # tries in all for errors nobody foresaw
    base_delay_s: float = 0.5
    max_delay_s: float = 30.0
    uncounted_delay_s: float = 5.0  # after a try that does not count


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """When consumption pauses because nothing works, and how soon it is tried again."""

    max_failed_in_a_row: int = 20  # tries, of more than one message
    max_lacking_in_a_row: int = 3  # tries that all lacked something by name, like `disk`
    first_probe_s: float = 1.0
    max_probe_interval_s: float = 10.0


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    """Offsets go out after this many finished messages or this much time."""

    max_messages: int = 5_000
    max_interval_s: float = 0.5


@dataclass(frozen=True, slots=True)
class FlowPolicy:
    """Bounds on work in flight. A partition over its bound is paused, never dropped."""

    max_in_flight: int = 64  # handlers suspended at once, in each lane
    max_buffered_per_partition: int = 500  # fetched, not yet finished
    max_uncommitted_per_partition: int = 20_000  # fetched since the oldest unfinished one
    max_poll_records: int = 500
    # With leaving the group and sending what was committed, an end must fit in the 25 s that the
    # supervisor gives it, also while the broker is away.
    drain_timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Policies:
    """All policies of one consumer."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    gate: GatePolicy = field(default_factory=GatePolicy)
    commit: CommitPolicy = field(default_factory=CommitPolicy)
    flow: FlowPolicy = field(default_factory=FlowPolicy)
