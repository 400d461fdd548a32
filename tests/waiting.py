"""Waiting for a condition that other tasks or processes bring about."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psutil

T = TypeVar("T")


async def until(
    condition: Callable[[], bool] | Callable[[], Awaitable[bool]], *, within_s: float = 60.0
) -> None:
    """Look again and again until it holds. Raises: TimeoutError."""
    async with asyncio.timeout(within_s):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.005)


async def eventually(
    attempt: Callable[[], Awaitable[T]], *, on: type[Exception], within_s: float = 120.0
) -> T:
    """The first result of `attempt`, tried again while it raises `on`."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                return await attempt()
            except on:
                await asyncio.sleep(0.05)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, be it unburied; it may end between any two looks at it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
