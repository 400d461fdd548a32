"""Looking again and again whether a server is there, for `/ready` and the log."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from libs.kernel import TransientError, set_within

log = structlog.get_logger(__name__)

PROBE_S = 5.0
RETRY_S = 1.0


async def watch(
    check: Callable[[], Awaitable[object]],
    name: str,
    report: Callable[[str | None], None],
    *,
    stop: asyncio.Event | None = None,
) -> None:
    """Report `name`, or what the error says is missing, while `check` raises TransientError, and
    None while it does not, until `stop` is set. What is wrong is logged once, in its own words.
    """
    report(name)
    complaint = ""
    stop = stop or asyncio.Event()
    while not stop.is_set():
        try:
            await check()
        except TransientError as exc:
            report(exc.missing or name)
            if str(exc) != complaint:
                complaint = str(exc)
                log.warning("server_awaited", server=name, reason=complaint)
        else:
            report(None)
            complaint = ""
        await set_within(stop, RETRY_S if complaint else PROBE_S)
