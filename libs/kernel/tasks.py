"""Ending background tasks, and waiting for what may not come."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")

_AGAIN_S = 0.5


async def end_tasks(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel them and wait until each has ended, however it does.

    One cancellation can get lost on the way: before Python 3.12 `asyncio.wait_for` drops it when
    what it waits for ends in the same moment, as a refused connection does, and libraries use it; a
    loop would run on for ever. So tasks are cancelled again until they end, and must have nothing
    to do in between that a second cancellation may not interrupt.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_S)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # was looked at: no complaint that nobody did


async def to_its_end(work: Awaitable[T], *, within_s: float | None = None) -> T:
    """The result of `work`, which goes on when its caller is cancelled and is then waited for.

    For writes that a thread or a server does: they cannot be taken back, and must not come after
    the removal that a cancelled caller does next.

    Args:
        within_s: How long a cancelled caller waits for it; None: until it has ended.
    """
    running = asyncio.ensure_future(work)
    running.add_done_callback(lambda task: task.cancelled() or task.exception())
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running}, timeout=within_s)
        raise


async def set_within(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the event; False: it was not set in time."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
