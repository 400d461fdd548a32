"""A circuit breaker: a model that keeps failing is left alone for a while."""

import time
from collections.abc import Callable


class CircuitBreaker:
    """Open after a run of failures; lets one call try again after a pause.

    Args:
        max_failures: In a row, until calls are refused.
        pause_s: How long they are; one that fails after it starts the pause anew.
    """

    def __init__(
        self,
        *,
        max_failures: int = 5,
        pause_s: float = 15.0,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_failures = max_failures
        self._pause_s = pause_s
        self._clock_s = clock_s
        self._failures = 0
        self._closed_again_at = 0.0

    def allows(self) -> bool:
        """Whether a call may be tried now. After the pause that is one call, until it reports."""
        if self._failures < self._max_failures:
            return True
        if self._clock_s() < self._closed_again_at:
            return False
        self._closed_again_at = self._clock_s() + self._pause_s
        return True

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= self._max_failures:
            self._closed_again_at = self._clock_s() + self._pause_s
