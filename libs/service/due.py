"""Long work that stops soon after nobody waits for it any more."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def while_due(
    work: Coroutine[Any, Any, T], is_due: Callable[[], Awaitable[bool]], *, check_s: float = 1.0
) -> T | None:
    """The work's result; None, with the work cancelled, once `is_due` says no.

    `is_due` is asked every `check_s` while the work runs, so whoever ends the work (a cancel, a
    delete, a newer generation) is obeyed within that time.
    """
    task = asyncio.create_task(work)
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=check_s)
            if done:
                return task.result()
            if not await is_due():
                return None
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
