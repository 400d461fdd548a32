"""Running a process until it is told to stop."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import setproctitle
import structlog
import uvloop

from libs.kernel import PermanentError, SluiceError
from libs.observability import configure_logging

log = structlog.get_logger(__name__)

_stop: ContextVar[asyncio.Event] = ContextVar("stop")


def stopping() -> asyncio.Event:
    """The event that SIGTERM or SIGINT sets in a process started by `run`."""
    found = _stop.get(None)
    if found is None:
        found = asyncio.Event()
        _stop.set(found)
    return found


def run(
    main: Callable[[], Coroutine[Any, Any, None]], service: str, *, log_level: str = "INFO"
) -> None:
    """Run a service's `main` to its end; blocking.

    The first SIGTERM or SIGINT sets `stopping()`: `main` drains and returns. Ctrl-C after that
    cancels it; more SIGTERMs do not, as whoever ends many processes may well say it twice. An
    error that stops the service is logged in one line, and the exit status is 1.
    """
    setproctitle.setproctitle(f"sluice: {service}")
    configure_logging(service, log_level)
    gc.freeze()  # what is imported by now stays; looking it over again and again costs throughput
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_stopped(main))
    except PermanentError as exc:
        log.error("process_cannot_run", reason=exc.reason, detail=exc.detail)  # noqa: TRY400
        sys.exit(1)
    except (SluiceError, ExceptionGroup):
        log.exception("process_failed")
        sys.exit(1)


async def _until_stopped(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    stop = stopping()
    work = asyncio.ensure_future(main())

    def asked_to_stop(number: signal.Signals) -> None:
        log.info("stop_requested", signal=number.name)
        if stop.is_set() and number is signal.SIGINT:
            work.cancel()
        stop.set()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, asked_to_stop, signum)
    log.info("process_started")
    try:
        await work
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
    log.info("process_stopped")
