"""Ending background tasks, and waiting for what may not come."""

import asyncio
import math
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

AGAIN_S = 5.0  # what a task has to do when it is cancelled takes less


async def end_tasks(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel them and wait until each has ended, however it does.

    One cancellation can get lost on the way: before Python 3.12 `asyncio.wait_for` drops it when
    what it waits for ends in the same moment, as a refused connection does, and libraries use it; a
    loop would run on for ever. So tasks that have not ended after 5 s are cancelled again.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
    for task in tasks:
        look_at(task)


def look_at(task: "asyncio.Future[Any]") -> None:
    """Of a task that has ended, so that nobody complains of an error that was not asked for."""
    if not task.cancelled():
        task.exception()


async def to_its_end(work: Awaitable[T], *, within_s: float | None = None) -> T:
    """The result of `work`, which goes on when its caller is cancelled and is then waited for.

    For writes that a thread or a server does: they cannot be taken back, and must not come after
    the removal that a cancelled caller does next.

    Args:
        within_s: How long a cancelled caller waits for it; None: until it has ended.
    """
    running = asyncio.ensure_future(work)
    running.add_done_callback(look_at)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await _done(running, within_s)
        raise


async def _done(running: "asyncio.Future[Any]", within_s: float | None) -> None:
    """Whoever waits may be cancelled again and again: it waits on."""
    now = asyncio.get_running_loop().time
    ends_at = math.inf if within_s is None else now() + within_s
    while not running.done() and (left_s := ends_at - now()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({running}, timeout=None if within_s is None else left_s)


async def set_within(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the event; False: it was not set in time."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
