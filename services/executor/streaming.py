"""Model output in groups: about 20 a second are enough for an eye, and spare SQL and the broker."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

from libs.kernel import end_tasks
from services.executor.cancellation import StopSignal

T = TypeVar("T")
GROUP_INTERVAL_S = 0.05


async def grouped(
    items: AsyncIterator[T], stop: StopSignal, *, interval_s: float = GROUP_INTERVAL_S
) -> AsyncGenerator[list[T], None]:
    """Lists of what came, the first item at once, then one list per interval.

    Raises: TurnCancelledError as soon as the turn is stopped, though nothing comes; whatever
    `items` raises, after the group that came before it. Close it (`aclosing`) when done early.
    """
    clock = asyncio.get_running_loop().time
    stopped = asyncio.ensure_future(stop.wait())
    pending = asyncio.ensure_future(_next(items))
    group: list[T] = []
    due = clock()
    try:
        while True:
            wait_s = max(0.0, due - clock()) if group else None
            await asyncio.wait(
                {pending, stopped}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED
            )
            stop.check()
            ended = False
            if pending.done():
                ended = pending.exception() is not None
                if not ended:
                    group.append(pending.result())
                    pending = asyncio.ensure_future(_next(items))
            if group and (ended or clock() >= due):
                yield group
                group, due = [], clock() + interval_s
            if ended:
                break
        error = pending.exception()
        if error is not None and not isinstance(error, StopAsyncIteration | _End):
            raise error
    finally:
        await end_tasks(stopped, pending)


class _End(Exception):  # noqa: N818 - a task cannot end with StopAsyncIteration
    """The items are at their end."""


async def _next(items: AsyncIterator[T]) -> T:
    try:
        return await anext(items)
    except StopAsyncIteration:
        raise _End from None
