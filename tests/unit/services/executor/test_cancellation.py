"""A running turn hears of its cancellation, whatever the database went through."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from libs.kernel import TransientError
from libs.storage.sql import Database, UnitOfWork
from libs.storage.sql.turns import cancel
from services.executor.cancellation import RunningTurns, StopSignal
from services.executor.streaming import grouped
from tests.unit.services.executor.conversation import planned


class DatabaseAwayOnce(Database):
    """Its first read finds SQL away."""

    def __init__(self, db: Database) -> None:
        super().__init__(db.engine)
        self.failed = asyncio.Event()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        if not self.failed.is_set():
            self.failed.set()
            raise TransientError("SQL is away")
        async with super().reading() as sql:
            yield sql


async def test_a_cancellation_is_seen_after_sql_was_away(db: Database) -> None:
    event = await planned(db)
    flaky = DatabaseAwayOnce(db)
    running = RunningTurns(flaky, poll_interval_s=0.01)
    async with running.running(event.tenant, event.turn_id) as stop:
        await flaky.failed.wait()
        async with db.work() as sql:  # no broadcast comes
            await cancel(sql, event.tenant, event.turn_id)
        await asyncio.wait_for(stop.wait(), 60)


class DatabaseThatLosesACancellation(Database):
    """A connection is refused in the moment in which whoever waits for it is cancelled: before
    Python 3.12 `asyncio.wait_for` tells of the refusal alone.
    """

    def __init__(self, db: Database) -> None:
        super().__init__(db.engine)
        self.connecting = asyncio.Event()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        if not self.connecting.is_set():
            self.connecting.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise TransientError("SQL is away") from None
        async with super().reading() as sql:
            yield sql


async def test_a_turn_that_fails_while_sql_is_away_is_left_at_once(db: Database) -> None:
    event = await planned(db)
    flaky = DatabaseThatLosesACancellation(db)
    running = RunningTurns(flaky, poll_interval_s=0.01)
    async with asyncio.timeout(60):
        async with running.running(event.tenant, event.turn_id):
            await flaky.connecting.wait()


async def test_an_answer_left_at_its_last_piece_leaves_no_error_behind() -> None:
    async def pieces() -> AsyncIterator[int]:
        yield 1

    lost: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    async with aclosing(grouped(pieces(), StopSignal(), interval_s=60)) as groups:
        assert await anext(groups) == [1]
        for _ in range(5):
            await asyncio.sleep(0)  # by now the pieces are known to have ended
    gc.collect()
    assert lost == []
