"""The relay and the sweep: every committed row goes out, in order, and where it went is known."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
from sqlalchemy import select, update

from libs.contracts import OutgoingRecord
from libs.eventbus.relay import Relay, RelayPolicy
from libs.eventbus.sweep import Sweep, SweepPolicy
from libs.kernel import DiskError, now_us
from libs.storage.sql import Database, UnitOfWork
from libs.storage.sql.outbox import SentRow, mark_sent
from libs.storage.sql.tables import outbox
from tests.fakes_delivery import FakePublisher
from tests.waiting import until

TOPIC = "documents.uploaded.v1"
QUICK = RelayPolicy(mark_every_s=0.001, retry_after_s=0.01, max_retry_after_s=0.02)


@pytest.fixture
def publisher() -> FakePublisher:
    return FakePublisher()


@pytest.fixture
def relay(db: Database, publisher: FakePublisher) -> Relay:
    made = Relay(db, publisher, lambda: "e1", QUICK)
    db.after_commit = made.after_commit
    return made


@asynccontextmanager
async def running(*works: Relay | Sweep) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(work.run()) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def commit(db: Database, *keys: str, delay_s: float = 0.0) -> None:
    not_before = now_us() + int(delay_s * 1e6) if delay_s else 0
    async with db.work() as sql:
        for key in keys:
            await sql.emit_record(OutgoingRecord(TOPIC, key, b"v"), not_before=not_before)


async def unsent(db: Database) -> list[str]:
    async with db.reading() as sql:
        rows = await sql.rows(select(outbox.c.key).where(outbox.c.sent_at.is_(None)))
    return [row["key"] for row in rows]


async def until_unsent_are(db: Database, *keys: str) -> None:
    async def reached() -> bool:
        return await unsent(db) == list(keys)

    await until(reached)


async def test_rows_go_out_in_the_order_of_their_commits(
    db: Database, publisher: FakePublisher, relay: Relay
) -> None:
    keys = [f"d{number % 3}/{number}" for number in range(30)]
    async with running(relay):
        for key in keys:
            await commit(db, key)
        await relay.drain(5)
    assert publisher.keys() == keys
    assert await unsent(db) == []


async def test_drained_is_marked_too_what_was_being_marked(
    db: Database, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slowly(sql: UnitOfWork, sent: Sequence[SentRow]) -> None:
        begun.set()
        await may_end.wait()
        await mark_sent(sql, sent)

    monkeypatch.setattr("libs.eventbus.relay.mark_sent", slowly)
    async with running(relay):
        await commit(db, "d1")
        await begun.wait()
        draining = asyncio.create_task(relay.drain(60))
        await asyncio.sleep(0.05)
        assert not draining.done()
        may_end.set()
        await draining
        assert await unsent(db) == []


async def test_where_a_row_went_is_kept_with_the_epoch_it_was_sent_in(
    db: Database, publisher: FakePublisher, relay: Relay
) -> None:
    async with running(relay):
        await commit(db, "d1", "d1")
        await relay.drain(5)
    async with db.reading() as sql:
        rows = await sql.rows(select(outbox).order_by(outbox.c.offset))
    assert [(row["offset"], row["broker_epoch"]) for row in rows] == [(0, "e1"), (1, "e1")]
    assert len({row["partition"] for row in rows}) == 1


async def test_committing_neither_fails_nor_waits_while_the_broker_is_away(
    db: Database, publisher: FakePublisher, relay: Relay
) -> None:
    publisher.down = True
    async with running(relay):
        await commit(db, "d1")
        await relay.drain(5)
        assert await unsent(db) == ["d1"]
        publisher.down = False
        async with running(Sweep(db, relay, SweepPolicy(interval_s=0.01))):
            await until_unsent_are(db)
    assert publisher.keys() == ["d1"]


async def test_one_row_that_no_broker_takes_does_not_hold_up_the_others(
    db: Database, publisher: FakePublisher, relay: Relay
) -> None:
    publisher.refused = {"poison"}
    async with running(relay, Sweep(db, relay, SweepPolicy(interval_s=0.01))):
        await commit(db, "poison", "d1")
        await commit(db, "d2", delay_s=0.02)
        await until_unsent_are(db, "poison")
    assert set(publisher.keys()) == {"d1", "d2"}  # a claim that ran out may send one again


async def test_a_delayed_row_goes_out_at_its_time_though_the_sweep_is_asleep(
    db: Database, publisher: FakePublisher, relay: Relay
) -> None:
    async with running(relay, Sweep(db, relay, SweepPolicy(interval_s=30.0))):
        await asyncio.sleep(0.05)  # lets the sweep fall asleep: nothing is there to await
        due_at = now_us() + 2_000_000
        await commit(db, "d1", delay_s=2.0)
        await relay.drain(5)
        assert publisher.keys() == []
        await until_unsent_are(db)
    assert publisher.keys() == ["d1"]
    assert now_us() >= due_at


async def test_rows_of_a_process_that_died_are_sent_once_by_one_of_the_others(
    db: Database, publisher: FakePublisher
) -> None:
    keys = [f"d{number}" for number in range(50)]
    await commit(db, *keys)  # no relay: the process died right after its commit
    async with db.work() as sql:
        await sql.execute(update(outbox).values(not_before=0))
    relays = [Relay(db, publisher, lambda: "e1", QUICK) for _ in range(3)]
    sweeps = [Sweep(db, relay, SweepPolicy(interval_s=0.01, batch=7)) for relay in relays]
    async with running(*relays, *sweeps):
        await until_unsent_are(db)
    assert sorted(publisher.keys()) == sorted(keys)


class FullDatabase(Database):
    """Takes no writes for some tries."""

    refusals = 5

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        if self.refusals:
            self.refusals -= 1
            raise DiskError("no room")
        async with super().work() as sql:
            yield sql


async def test_while_sql_takes_no_writes_marking_is_tried_less_and_less_often(
    db: Database, publisher: FakePublisher
) -> None:
    policy = RelayPolicy(mark_every_s=0.01)
    relay = Relay(FullDatabase(db.engine), publisher, lambda: "e1", policy)
    db.after_commit = relay.after_commit
    clock = asyncio.get_running_loop().time
    began = clock()
    async with running(relay):
        await commit(db, "a")
        await until_unsent_are(db)
    assert clock() - began >= 0.01 * (1 + 2 + 4 + 8 + 16 + 32)
