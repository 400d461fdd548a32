"""The one owner of tries of calls to an OpenAI-compatible server."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from libs.models.breaker import CircuitBreaker
from libs.models.openai_errors import MODEL_ERRORS, RetryableError, translate
from libs.models.ports import ModelUnavailableError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TryPolicy:
    """Bounds on one call's tries. They are only made before anything was answered."""

    max_attempts: int = 3
    base_delay_s: float = 0.3
    max_delay_s: float = 5.0  # a server that asks for more (Retry-After) is not waited for


class Tries:
    """Tries calls again that may succeed later, and leaves a server alone that keeps failing."""

    def __init__(self, policy: TryPolicy, breaker: CircuitBreaker) -> None:
        self._policy = policy
        self.breaker = breaker

    async def first_success(
        self, attempt: Callable[[], Awaitable[T]], *, deadline: float, timeout_s: float
    ) -> T:
        """The result of the first try that succeeds.

        Args:
            deadline: Of all tries, by the loop's clock.
            timeout_s: Of each.

        Raises: as `ChatModel`, and what `attempt` raises beside MODEL_ERRORS.
        """
        if not self.breaker.allows():
            raise ModelUnavailableError("unavailable", "left alone after repeated failures")
        retrying = AsyncRetrying(
            stop=self._give_up(deadline),
            wait=self._wait_s,
            retry=retry_if_exception_type(RetryableError),
            reraise=True,
        )
        return await retrying(self._one_try, attempt, deadline, timeout_s)

    async def _one_try(
        self, attempt: Callable[[], Awaitable[T]], deadline: float, timeout_s: float
    ) -> T:
        try:
            async with asyncio.timeout_at(min(deadline, now_s() + timeout_s)):
                result = await attempt()
        except (*MODEL_ERRORS, RetryableError) as exc:
            error = exc if isinstance(exc, RetryableError) else translate(exc)
            if isinstance(error, ModelUnavailableError):
                self.breaker.failed()
            raise error from None  # its cause may quote the request or the key
        self.breaker.succeeded()
        return result

    def _give_up(self, deadline: float) -> Callable[[RetryCallState], bool]:
        def give_up(state: RetryCallState) -> bool:
            wait_s = state.upcoming_sleep
            return (
                state.attempt_number >= self._policy.max_attempts
                or wait_s > self._policy.max_delay_s
                or now_s() + wait_s >= deadline
            )

        return give_up

    def _wait_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked_s = error.retry_after_s if isinstance(error, RetryableError) else 0.0
        if asked_s:
            return asked_s
        backoff = wait_random_exponential(self._policy.base_delay_s, self._policy.max_delay_s)
        return float(backoff(state))


def now_s() -> float:
    """The running loop's clock."""
    return asyncio.get_running_loop().time()
