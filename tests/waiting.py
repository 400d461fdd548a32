"""Waiting for a condition that other tasks or processes bring about."""

import asyncio
from collections.abc import Awaitable, Callable


async def until(
    condition: Callable[[], bool] | Callable[[], Awaitable[bool]], *, within_s: float = 10.0
) -> None:
    """Look again and again until it holds. Raises: TimeoutError."""
    async with asyncio.timeout(within_s):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.005)
