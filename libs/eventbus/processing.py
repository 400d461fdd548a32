"""The whole life of one delivered message: decode, handle, and what an error leads to."""

import asyncio
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import structlog

from libs.contracts import read
from libs.eventbus.gate import Gate
from libs.eventbus.ledger import Ledger
from libs.eventbus.message import Record, attempt_of, origin_of, schema_of
from libs.eventbus.observing import Observer
from libs.eventbus.policies import RetryPolicy
from libs.eventbus.retrying import Holding, backoff_s, jittered_s
from libs.eventbus.subscriptions import Failure, Subscription
from libs.kernel import PermanentError, TransientError
from libs.observability import tracing

log = structlog.get_logger(__name__)

BACKEND = "backend"  # what is missing when an error does not say
FAILING_MESSAGES = "failing-messages"
MAX_HOOK_ATTEMPTS = 3  # for a `failed` hook with a bug; a transient error is held instead


@dataclass(slots=True)
class Processor:
    """Takes one record to an end after which its offset may be committed.

    Returns when its effects, its retry or its failure are safe. Raises only CancelledError, or
    AbandonedError for a message that waited at the gate when its partition went elsewhere.
    """

    subscriptions: dict[type[Any], Subscription]
    ledger: Ledger
    retry: RetryPolicy
    gate: Gate
    holding: Holding
    observer: Observer

    async def process(self, record: Record) -> None:
        if self.gate.shut:
            await self.gate.turn(record.topic)
        sampled = self.observer.enter(record)
        seen = self.observer.topic(record.topic)
        try:
            event = await read(record.value or b"", schema_of(record))
            subscription = self.subscriptions[type(event)]
        except TransientError as exc:
            await self._unread(record, exc)
            return
        except Exception as exc:  # noqa: BLE001 - poison: no error may stop the partition
            await self._give_up(record, None, _undecodable(record, exc))
            return
        started = perf_counter()
        try:
            try:
                if sampled:
                    with tracing.span(f"{record.topic} handle"):
                        await subscription.handle(event)
                else:
                    await subscription.handle(event)
            finally:
                seen.handler_seconds.observe(perf_counter() - started)
        except asyncio.CancelledError:
            if _is_being_cancelled():
                raise
            await self._bug(record, event, RuntimeError("the handler awaited a cancelled task"))
        except PermanentError as exc:
            await self._permanent(record, event, exc)
        except TransientError as exc:
            await self._transient(record, event, exc)
        except Exception as exc:  # noqa: BLE001 - a bug of the handler
            await self._bug(record, event, exc)
        else:
            seen.handled.inc()
            self.gate.went_well()

    async def _unread(self, record: Record, exc: TransientError) -> None:
        """What it was written with can't be had now: it is not to blame."""
        self.gate.went_wrong(exc.missing or BACKEND, origin_of(record), lacking=True)
        if not await self._comes_back(record, exc.missing, repr(exc), counts=False):
            await self._give_up(record, None, _undecodable(record, exc))

    async def _permanent(self, record: Record, event: Any, exc: PermanentError) -> None:
        failure = Failure(exc.reason, exc.detail, attempt_of(record), permanent=True)
        log.info("message_failed", reason=exc.reason, detail=exc.detail)
        hook_error = await self._call_hook(event, failure)
        if hook_error is None and self.subscriptions[type(event)].failed is not None:
            self.observer.topic(record.topic).failed()
            self.gate.went_well()
        else:
            await self._give_up(record, event, _with_hook_error(failure, hook_error))

    async def _transient(self, record: Record, event: Any, exc: TransientError) -> None:
        lacking = bool(exc.missing)
        self.gate.went_wrong(exc.missing or BACKEND, origin_of(record), lacking=lacking)
        await self._again(record, event, exc, "retries-exhausted", self.retry.max_attempts)

    async def _bug(self, record: Record, event: Any, exc: Exception) -> None:
        log.error("handler_failed", exc_info=exc)
        self.gate.went_wrong(FAILING_MESSAGES, origin_of(record))
        await self._again(record, event, exc, "internal-error", self.retry.max_bug_attempts)

    async def _again(
        self, record: Record, event: Any, exc: Exception, reason: str, max_attempts: int
    ) -> None:
        attempt = attempt_of(record)
        counts = not getattr(exc, "missing", "")
        if self.gate.nothing_works or not counts or attempt < max_attempts:
            log.warning("message_retried", attempt=attempt, error=repr(exc))
            if await self._comes_back(record, reason, repr(exc), counts=counts):
                return
        failure = Failure(reason, f"{type(exc).__name__}: {exc}", attempt, permanent=False)
        hook_error = await self._call_hook(event, failure)
        await self._dead_letter(record, event, _with_hook_error(failure, hook_error))

    async def _give_up(self, record: Record, event: Any, failure: Failure) -> None:
        self.gate.went_wrong(FAILING_MESSAGES, origin_of(record))
        if self.gate.nothing_works and await self._comes_back(
            record, failure.reason, failure.detail
        ):
            return
        await self._dead_letter(record, event, failure)

    async def _comes_back(
        self, record: Record, reason: str, error: str, *, counts: bool = True
    ) -> bool:
        """Deliver it again later. False: it is too large for that."""
        attempt = attempt_of(record)
        nothing_works = self.gate.nothing_works
        if not counts:
            delay_s = jittered_s(self.retry.uncounted_delay_s)
        elif nothing_works and not self.gate.shut:  # it fails alone: nobody else spaces its tries
            delay_s = backoff_s(self.retry, self.retry.max_attempts)
        else:
            delay_s = backoff_s(self.retry, attempt)
        next_attempt = 1 if nothing_works else attempt + counts
        try:
            await self.holding.until_done(
                lambda: self.ledger.retry(record, next_attempt, delay_s, error), "retry"
            )
        except PermanentError:
            return False
        self.observer.topic(record.topic).retried(reason)
        return True

    async def _dead_letter(self, record: Record, event: Any, failure: Failure) -> None:
        tenant = getattr(event, "tenant", "")
        log.error("message_dead_lettered", reason=failure.reason, detail=failure.detail)
        await self.holding.until_done(
            lambda: self.ledger.dead_letter(record, failure, tenant), "dead letter"
        )
        self.observer.topic(record.topic).dead_lettered(failure.reason)

    async def _call_hook(self, event: Any, failure: Failure) -> Exception | None:
        """Let the entity end in a failed state. Returns the error of a hook that cannot."""
        hook = self.subscriptions[type(event)].failed
        if hook is None:
            return None
        call = _HookCall(hook, event, failure)
        await self.holding.until_done(call.attempt, "failed hook")
        return call.error


class _HookCall:
    """One event's `failed` hook: raises while it should be tried again, then keeps the error."""

    def __init__(self, hook: Any, event: Any, failure: Failure) -> None:
        self._hook, self._event, self._failure = hook, event, failure
        self._bugs = 0
        self.error: Exception | None = None

    async def attempt(self) -> None:
        try:
            await self._hook(self._event, self._failure)
        except TransientError:
            raise
        except Exception as exc:
            self._bugs += 1
            if self._bugs < MAX_HOOK_ATTEMPTS and not isinstance(exc, PermanentError):
                raise
            log.exception("failed_hook_failed")
            self.error = exc


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _undecodable(record: Record, exc: Exception) -> Failure:
    if isinstance(exc, PermanentError):
        return Failure(exc.reason, exc.detail, attempt_of(record), permanent=True)
    if isinstance(exc, KeyError):
        detail = f"nothing here handles {exc.args[0]}"
        return Failure("unexpected-event", detail, attempt_of(record), permanent=True)
    return Failure("undecodable", repr(exc), attempt_of(record), permanent=True)


def _with_hook_error(failure: Failure, error: Exception | None) -> Failure:
    if error is None:
        return failure
    detail = f"{failure.detail}; recording the failure failed too: {error!r}"
    return Failure(failure.reason, detail, failure.attempts, failure.permanent)
