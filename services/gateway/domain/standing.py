"""Why something has not moved, in words: pure rules over what SQL and the broker know."""

import re
from dataclasses import dataclass
from typing import Literal

from services.gateway.domain.lag import Workers, duration, readiness_of

_RATE_LIMIT = re.compile(r"\b429\b|rate.?limit|too many requests", re.IGNORECASE)
RECONCILE = "the reconciler emits it again within 30 s"
# What a later try can change; everything else of the parse stage lies in the file itself.
PASSING = frozenset({"retries-exhausted", "internal-error", "missing-parse", "missing-chunks"})

Reason = Literal[
    "final",
    "queued",
    "in-work",
    "retry",
    "rate-limited",
    "stopped",
    "no-worker",
    "lost",
    "unsent",
    "failed",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Why:
    """`reason` is for scripts, `words` is for people."""

    reason: Reason
    words: str


@dataclass(frozen=True, slots=True)
class Way:
    """Where the event that work waits for is on its way."""

    sent: bool
    age_s: float  # since it was committed
    due_in_s: float  # until it may be sent; <= 0: now
    is_retry: bool
    attempt: int
    error: str  # of the try before
    log_is_lost: bool
    before: int | None  # messages of its partition before it; < 0: it was handled; None: unknown


def explain(way: Way | None, workers: Workers, *, leased: bool) -> Why:
    """Why work waits. `leased`: a process has it in hand and says so."""
    if leased:
        return Why("in-work", f"in work at the {workers.service} now")
    if way is None:
        return Why("lost", f"its event is not known any more: {RECONCILE}")
    if not way.sent:
        return _unsent(way)
    if way.log_is_lost:
        return Why("lost", f"its event was lost with the broker's log: {RECONCILE}")
    if way.before is None:
        return Why("unknown", "the broker does not answer: its place in the queue is unknown")
    if way.before < 0:
        return Why("lost", f"its event was handled and nothing came of it: {RECONCILE}")
    return _queued(way.before, workers, way.error if way.is_retry else "")


def _unsent(way: Way) -> Why:
    if way.is_retry and way.due_in_s > 0:
        until = f"in {duration(way.due_in_s)}"
        if _is_rate_limit(way.error):
            return Why("rate-limited", f"rate limited: try {way.attempt} comes {until}")
        return Why("retry", f"try {way.attempt} comes {until}, after: {way.error or 'an error'}")
    since = duration(way.age_s)
    return Why("unsent", f"its event has not reached the broker yet, for {since}")


def _is_rate_limit(error: str) -> bool:
    return _RATE_LIMIT.search(error) is not None


def _queued(before: int, workers: Workers, error: str) -> Why:
    """`error`: of the try before; '' when there was none."""
    place = "next" if before == 0 else f"at most {before} before it"
    after = f"; it was tried before: {error}" if error else ""
    trouble = readiness_of(workers)
    if trouble:
        stopped = workers.live > 0 and "failing-messages" in workers.missing
        reason: Reason = "stopped" if stopped else "no-worker"
        if workers.live > 0 and _is_rate_limit(error):
            reason = "rate-limited"
        return Why(reason, f"queued ({place}), but {trouble}{after}")
    running = f"{workers.ready} {workers.service} running{after}"
    if before == 0:
        return Why("in-work", f"in work or next: {running}")
    return Why("queued", f"queued, {place}: {running}")


def explain_failure(stage: str | None, reason: str | None, detail: str | None) -> Why:
    """Why a document failed."""
    return Why("failed", f"failed at {stage or '?'} ({reason or '?'}): {detail or 'no detail'}")


def may_help(stage: str | None, reason: str | None) -> bool:
    """Whether trying a failed document again can end otherwise, without another file."""
    return stage != "parse" or reason in PASSING
