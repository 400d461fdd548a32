"""Waiting for whichever of several things comes first."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from libs.kernel import end_tasks


async def until_any(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Run them until the first ends, cut off the others, and raise if the first failed."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end_tasks(*tasks)
    for task in done:
        task.result()
