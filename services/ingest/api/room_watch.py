"""Readiness says when there is no room for uploads, before somebody tries one."""

import asyncio
from collections.abc import Callable

import structlog

from libs.kernel import set_within
from libs.storage.room import Room

log = structlog.get_logger(__name__)

INTERVAL_S = 1.0


async def watch(
    room: Room,
    report: Callable[[str | None], None],
    *,
    stop: asyncio.Event,
    interval_s: float = INTERVAL_S,
) -> None:
    """Report `disk` while there is no room, and None while there is, until `stop` is set."""
    reported: str | None = None
    while not stop.is_set():
        lack = await asyncio.to_thread(room.lack)
        problem = lack.missing if lack else None
        if problem != reported:
            log.warning("uploads_refused", reason=str(lack)) if lack else log.info("uploads_taken")
        reported = problem
        report(problem)
        await set_within(stop, interval_s)
