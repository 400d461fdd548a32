"""Housekeeping that comes by again and again, for as long as the process runs."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from libs.kernel import TransientError

log = structlog.get_logger(__name__)


async def regularly(
    work: Callable[[], Awaitable[object]], what: str, *, interval_s: float, stop: asyncio.Event
) -> None:
    """Do `work` after every interval until `stop` is set; what is away now is tried next time."""
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), interval_s)
            return
        try:
            await work()
        except TransientError as exc:
            log.warning("housekeeping_failed", work=what, error=str(exc))
