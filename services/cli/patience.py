"""Waiting for a platform that is away for a moment, restarting say."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.cli.errors import AwayError

T = TypeVar("T")


class Patience:
    """How long a platform that has answered before is waited for, from its last sign of life.

    One that never answered is not waited for: there is none, and the person should hear it.

    Args:
        limit_s: After this long without an answer the error is raised.
        pause_s: Before the first repeat; it doubles up to `max_pause_s`, with jitter.
    """

    def __init__(
        self, limit_s: float = 90.0, *, pause_s: float = 0.2, max_pause_s: float = 3.0
    ) -> None:
        self._limit_s = limit_s
        self._first_pause_s = self._pause_s = pause_s
        self._max_pause_s = max_pause_s
        self._answered_at: float | None = None

    def answered(self) -> None:
        """The platform gave a sign of life."""
        self._answered_at = asyncio.get_running_loop().time()
        self._pause_s = self._first_pause_s

    async def bear(self, error: AwayError) -> None:
        """Pause before the next try. Raises: the error, once patience is at its end."""
        now = asyncio.get_running_loop().time()
        if self._answered_at is None:
            if not error.answered:
                raise error
            self._answered_at = now
        if now - self._answered_at >= self._limit_s:
            raise error
        await asyncio.sleep(self._pause_s * random.uniform(0.75, 1.25))  # noqa: S311 - jitter
        self._pause_s = min(self._pause_s * 2, self._max_pause_s)

    async def through(self, request: Callable[[], Awaitable[T]]) -> T:
        """The result of a request that may be repeated, once it gets an answer.

        Raises: CliError.
        """
        while True:
            try:
                result = await request()
            except AwayError as exc:
                await self.bear(exc)
            else:
                self.answered()
                return result
