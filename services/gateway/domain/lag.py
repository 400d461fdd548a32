"""What a backlog means, in words: pure rules over what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SLOW_S = 300.0  # the oldest waits longer than this although somebody works


@dataclass(frozen=True, slots=True)
class Workers:
    """The living processes of one service."""

    service: str
    live: int
    ready: int
    missing: Sequence[str] = ()  # what those that are not ready wait for


@dataclass(frozen=True, slots=True)
class Verdict:
    """`state` is for scripts, `words` is for people."""

    state: Literal["idle", "working", "slow", "stalled"]
    words: str

    @property
    def is_alarm(self) -> bool:
        return self.state == "stalled"


def readiness_of(workers: Workers) -> str:
    """Why nobody of a service works; '' when somebody does."""
    if workers.live == 0:
        return f"no {workers.service} is running"
    if workers.ready == 0:
        return f"{workers.service} {_lacks(workers.missing)}"
    return ""


def _lacks(missing: Sequence[str]) -> str:
    if "failing-messages" in missing:
        return "has stopped on failing messages: see `sluice stuck` and `sluice dlq list`"
    return f"is running, but waits for {', '.join(missing) or 'its start'}"


def judge(waiting: int, oldest_s: float | None, workers: Workers) -> Verdict:
    """What one group's backlog on one topic means."""
    trouble = readiness_of(workers)
    if waiting == 0:
        return Verdict("idle", f"idle, but {trouble}" if trouble else "idle")
    since = "" if oldest_s is None else f", the oldest for {duration(oldest_s)}"
    if trouble:
        return Verdict("stalled", f"stalled: {waiting} waiting{since}; {trouble}")
    if oldest_s is not None and oldest_s > SLOW_S:
        return Verdict("slow", f"slow: {waiting} waiting or in work{since}")
    return Verdict("working", f"working: {waiting} waiting or in work{since}")


def duration(seconds: float) -> str:
    """`8 s`, `3 min`, `2.5 h`."""
    if seconds < 100:
        return f"{max(0, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
