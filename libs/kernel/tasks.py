"""Ending background loops."""

import asyncio
from typing import Any

_AGAIN_S = 0.5


async def end_loops(*loops: "asyncio.Future[Any]") -> None:
    """Cancel them and wait until each has ended, however it does.

    For loops that go on after errors. One cancellation can get lost on the way: before Python 3.12
    `asyncio.wait_for` drops it when what it waits for ends in the same moment, as a refused
    connection does; such a loop would run on for ever. So they are cancelled again until they end,
    and must have nothing to do in between that a second cancellation may not interrupt.
    """
    left = set(loops)
    while left:
        for loop in left:
            loop.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_S)
    for loop in loops:
        if not loop.cancelled():
            loop.exception()  # was looked at: no complaint that nobody did
