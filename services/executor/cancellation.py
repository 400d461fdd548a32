"""Stopping a turn: SQL is the truth and is asked every second, the broadcast makes it quick."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog

from libs.contracts import TurnControl
from libs.kernel import NotFoundError, TransientError, end_tasks
from libs.storage.sql import Database
from libs.storage.sql.turns import should_stop

log = structlog.get_logger(__name__)

T = TypeVar("T")
POLL_INTERVAL_S = 1.0


class TurnCancelledError(Exception):
    """The turn has ended, as its user wished; ends the work on it wherever that is."""


class StopSignal:
    """Whether one turn was asked to stop."""

    def __init__(self) -> None:
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self._stopped.set()

    def check(self) -> None:
        """Raises: TurnCancelledError."""
        if self._stopped.is_set():
            raise TurnCancelledError

    async def wait(self) -> None:
        await self._stopped.wait()

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """The result of `work`, which is cancelled when the turn is. Raises: TurnCancelledError."""
        task = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self.check()
            return task.result()
        finally:
            await end_tasks(stopped, task)


class RunningTurns:
    """The turns that this process works on, and their stop signals."""

    def __init__(self, db: Database, *, poll_interval_s: float = POLL_INTERVAL_S) -> None:
        self._db = db
        self._poll_interval_s = poll_interval_s
        self._signals: dict[tuple[str, str], StopSignal] = {}  # by tenant and turn

    async def on_control(self, event: TurnControl) -> None:
        """The broadcast: any action on a turn means to stop it."""
        signal = self._signals.get((event.tenant, event.turn_id))
        if signal is not None and await self._should_stop(event.tenant, event.turn_id):
            signal.stop()

    @asynccontextmanager
    async def running(self, tenant: str, turn_id: str) -> AsyncIterator[StopSignal]:
        """A signal for the block, set by the broadcast or by what SQL says."""
        signal = self._signals[tenant, turn_id] = StopSignal()
        poll = asyncio.create_task(self._poll(tenant, turn_id, signal))
        try:
            yield signal
        finally:
            self._signals.pop((tenant, turn_id), None)
            await end_tasks(poll)  # its SQL connection must not outlive the turn

    async def _poll(self, tenant: str, turn_id: str, signal: StopSignal) -> None:
        while True:
            try:
                if await self._should_stop(tenant, turn_id):
                    signal.stop()
                    return
            except TransientError as exc:
                log.warning("cancellation_not_read", turn_id=turn_id, error=str(exc))
            await asyncio.sleep(self._poll_interval_s)

    async def _should_stop(self, tenant: str, turn_id: str) -> bool:
        try:
            async with self._db.reading() as sql:
                return await should_stop(sql, tenant, turn_id)
        except NotFoundError:
            return True
