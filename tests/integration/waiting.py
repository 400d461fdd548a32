"""Waiting for a condition instead of for a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(
    attempt: Callable[[], Awaitable[T]], *, on: type[Exception], within_s: float = 30.0
) -> T:
    """The first result of `attempt`, tried again while it raises `on`."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                return await attempt()
            except on:
                await asyncio.sleep(0.05)
