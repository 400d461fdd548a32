"""The in-memory bus keeps the rules of the real one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.contracts import OutgoingRecord
from libs.eventbus import Policies, Subscriptions
from libs.eventbus.testing import InMemoryBus
from libs.kernel import now_us
from libs.storage.sql import open_database
from tests.suites.eventbus import POLICIES, TOPIC, EventBusSuite, FlakyDatabase, recorder

__all__ = ["recorder"]


class MemoryBus:
    """`InMemoryBus` with a poll loop of its own, as the suite needs it."""

    def __init__(self, db: FlakyDatabase) -> None:
        self.db = db
        self.dead: list[OutgoingRecord] = []
        self._bus: InMemoryBus | None = None
        self._policies = POLICIES
        self._polling: asyncio.Task[None] | None = None

    async def start(self, subscriptions: Subscriptions, policies: Policies = POLICIES) -> None:
        self._policies = policies
        if self._bus is None:
            self._bus = InMemoryBus(self.db, subscriptions, group_id="parser", policies=policies)
            self.dead = self._bus.dead_records
        else:
            self._bus.restart()
        self._polling = asyncio.create_task(self._poll(self._bus))

    async def _poll(self, bus: InMemoryBus) -> None:
        while True:
            bus.pump()
            bus.commit()
            for row in [row for row in bus.retries if row.not_before <= now_us()]:
                bus.retries.remove(row)
                bus.publish(row.record)
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        await self._end_polling()
        assert self._bus is not None
        await self._bus.engine.pause(self._policies.flow.drain_timeout_s)
        self._bus.commit()
        await self._bus.engine.close()

    async def kill(self) -> None:
        await self._end_polling()
        assert self._bus is not None
        await self._bus.engine.close()

    async def _end_polling(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    async def publish(self, *records: OutgoingRecord) -> None:
        assert self._bus is not None
        for record in records:
            self._bus.publish(record)

    async def committed(self) -> int:
        assert self._bus is not None
        marks = self._bus.log.committed.items()
        return sum(offset for (topic, _), offset in marks if topic == TOPIC)

    def unfinished(self) -> int:
        assert self._bus is not None
        return self._bus.engine.unfinished_count

    def problem(self) -> str | None:
        assert self._bus is not None
        return self._bus.engine.problem


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[MemoryBus]:
    db = FlakyDatabase(open_database(f"sqlite+aiosqlite:///{tmp_path}/test.db").engine)
    await db.create_schema()
    memory = MemoryBus(db)
    yield memory
    await memory.kill()
    await db.close()


class TestInMemoryBus(EventBusSuite):
    pass
