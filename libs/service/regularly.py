"""Housekeeping that comes by again and again, for as long as the process runs."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from libs.kernel import TransientError, set_within

log = structlog.get_logger(__name__)


async def regularly(
    work: Callable[[], Awaitable[object]], what: str, *, interval_s: float, stop: asyncio.Event
) -> None:
    """Do `work` after every interval until `stop` is set; what is away now is tried next time."""
    while not await set_within(stop, interval_s):
        try:
            await work()
        except TransientError as exc:
            log.warning("housekeeping_failed", work=what, error=str(exc))
