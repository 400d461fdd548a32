"""The reconciler emits what was lost, once, and leaves what is on its way."""

import asyncio

import pytest
from sqlalchemy import select, update

from libs.contracts import DocumentUploaded, OutgoingRecord, Position
from libs.eventbus.reconciler import Reconciler, Unfinished
from libs.kernel import TransientError, now_us
from libs.storage.sql import Database, leases
from libs.storage.sql.outbox import SentRow, mark_sent
from libs.storage.sql.retention import Retention, prune
from libs.storage.sql.tables import leases as lease_rows
from libs.storage.sql.tables import outbox
from tests.fakes_delivery import FakeOffsets, FakeWork

TOPIC = "documents.uploaded.v1"
PLACE = (TOPIC, 2)


def upload(document_id: str, lane: str = "") -> Unfinished:
    event = DocumentUploaded("acme", document_id, 1, "a.txt", "text/plain", "k", 1)
    return Unfinished(event, "parser", lane, lease=f"document:{document_id}")


class Bench:
    """A reconciler over fakes, and the outbox as it left it."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.epoch = "e1"
        self.offsets = FakeOffsets()
        self.work = FakeWork({"d1": upload("d1")})

    def another(self) -> Reconciler:
        return Reconciler(self.db, self.offsets, lambda: self.epoch, [self.work])

    async def reconcile(self) -> int:
        return await self.another().reconcile(self.work)

    async def emit(self, key: str = "d1", *, topic: str = TOPIC, not_before: int = 0) -> None:
        async with self.db.work() as sql:
            await sql.emit_record(OutgoingRecord(topic, key, b"v"), not_before=not_before)

    async def send(self, *, offset: int = 5) -> None:
        """Mark every unsent row as sent, into the current epoch."""
        async with self.db.work() as sql:
            unsent = select(outbox.c.id, outbox.c.topic).where(outbox.c.sent_at.is_(None))
            rows = await sql.rows(unsent)
            await mark_sent(
                sql,
                [
                    SentRow(row["id"], Position(row["topic"], PLACE[1], offset + n), self.epoch)
                    for n, row in enumerate(rows)
                ],
            )

    async def rows(self) -> list[tuple[str, str]]:
        async with self.db.reading() as sql:
            found = await sql.rows(select(outbox).order_by(outbox.c.created_at))
        return [(row["topic"], row["key"]) for row in found]


@pytest.fixture
def bench(db: Database) -> Bench:
    return Bench(db)


async def test_work_that_was_never_announced_is_emitted_in_its_lane(bench: Bench) -> None:
    bench.work.works["d2"] = upload("d2", lane="urgent")
    assert await bench.reconcile() == 2
    assert await bench.rows() == [(TOPIC, "d1"), (f"{TOPIC}.urgent", "d2")]


async def test_an_unsent_row_is_in_flight_be_it_a_retry_that_waits(bench: Bench) -> None:
    await bench.emit()
    assert await bench.reconcile() == 0
    await bench.send()
    bench.offsets.committed[PLACE] = 6
    await bench.emit(topic=f"{TOPIC}.parser.retry", not_before=now_us() + 60_000_000)
    assert await bench.reconcile() == 0


async def test_a_backlog_is_not_emitted_again_and_again(bench: Bench) -> None:
    bench.work.works = {f"d{n:04}": upload(f"d{n:04}") for n in range(450)}
    assert await bench.reconcile() == 450
    await bench.send(offset=0)
    bench.offsets.committed[PLACE] = 0  # two hours later the group has read nothing yet
    for _ in range(3):
        assert await bench.reconcile() == 0
    assert len(await bench.rows()) == 450


async def test_what_the_group_has_passed_without_an_effect_is_emitted_again(bench: Bench) -> None:
    await bench.emit()
    await bench.send(offset=5)
    bench.offsets.committed[PLACE] = 5
    assert await bench.reconcile() == 0
    bench.offsets.committed[PLACE] = 6
    assert await bench.reconcile() == 1
    assert await bench.reconcile() == 0


async def test_what_went_into_a_topic_that_was_deleted_and_made_again_is_emitted_again(
    bench: Bench,
) -> None:
    await bench.emit()
    await bench.send(offset=5)
    bench.offsets.ends[PLACE] = 6
    assert await bench.reconcile() == 0
    bench.offsets.ends[PLACE] = 2  # what is there now was sent since
    assert await bench.reconcile() == 1
    await bench.send(offset=1)
    assert await bench.reconcile() == 0


async def test_what_went_into_a_lost_log_is_emitted_again_once(bench: Bench) -> None:
    await bench.emit()
    await bench.send(offset=5)
    bench.epoch = "e2"
    assert await bench.reconcile() == 1
    await bench.send(offset=0)
    assert await bench.reconcile() == 0


async def test_a_paused_group_is_not_flooded_though_its_clock_was_set_back(bench: Bench) -> None:
    await bench.emit()
    await bench.send(offset=5)
    bench.offsets.committed[PLACE] = 6  # lost: emitted again, by a clock an hour behind
    assert await bench.reconcile() == 1
    async with bench.db.work() as sql:
        again = update(outbox).where(outbox.c.sent_at.is_(None))
        await sql.execute(again.values(created_at=outbox.c.created_at - 3_600_000_000))
    await bench.send(offset=6)
    for _ in range(3):
        assert await bench.reconcile() == 0


async def test_a_retry_that_went_into_a_lost_log_is_emitted_again(bench: Bench) -> None:
    await bench.emit()
    await bench.send(offset=5)
    bench.offsets.committed[PLACE] = 6
    await bench.emit(topic=f"{TOPIC}.parser.retry")
    await bench.send(offset=0)
    assert await bench.reconcile() == 0  # the retry is what is on its way now
    bench.epoch = "e2"
    bench.offsets.committed.clear()
    assert await bench.reconcile() == 1


async def test_work_whose_sent_row_is_no_longer_kept_is_emitted_again_once(bench: Bench) -> None:
    await bench.emit()
    await bench.send(offset=5)
    async with bench.db.work() as sql:
        await prune(sql, Retention(sent_events_s=-1), limit=10)
    assert await bench.reconcile() == 1
    await bench.send(offset=6)
    assert await bench.reconcile() == 0


async def test_the_lease_of_a_dead_worker_holds_its_work_only_until_it_runs_out(
    bench: Bench,
) -> None:
    await bench.emit()
    await bench.send(offset=5)
    bench.offsets.committed[PLACE] = 6
    async with bench.db.work() as sql:
        await leases.acquire(sql, "document:d1", "dead", ttl_s=60)
    assert await bench.reconcile() == 0
    async with bench.db.work() as sql:
        await sql.execute(update(lease_rows).values(expires_at=now_us()))
    assert await bench.reconcile() == 1


async def test_work_under_a_live_lease_is_left_alone(bench: Bench) -> None:
    async with bench.db.work() as sql:
        await leases.acquire(sql, "document:d1", "worker", ttl_s=60)
    assert await bench.reconcile() == 0
    async with bench.db.work() as sql:
        await leases.release(sql, "document:d1", "worker")
    assert await bench.reconcile() == 1


async def test_two_reconcilers_at_once_emit_once(bench: Bench) -> None:
    counts = await asyncio.gather(*(bench.reconcile() for _ in range(4)))
    assert sum(counts) == 1
    assert await bench.rows() == [(TOPIC, "d1")]


async def test_two_lost_turns_of_one_conversation_are_both_emitted(bench: Bench) -> None:
    bench.work.works = {"a": upload("same"), "b": upload("same")}
    assert await bench.reconcile() == 2


async def test_nothing_is_judged_before_the_epoch_is_known_or_while_the_broker_is_away(
    bench: Bench,
) -> None:
    bench.epoch = ""
    assert await bench.reconcile() == 0
    bench.epoch = "e1"
    await bench.emit()
    await bench.send()
    bench.offsets.down = True
    with pytest.raises(TransientError):
        await bench.reconcile()
    assert await bench.rows() == [(TOPIC, "d1")]


async def test_it_runs_at_once_when_woken_and_outlives_faults(bench: Bench) -> None:
    await bench.emit()
    await bench.send()
    bench.offsets.down = True
    reconciler, stop = bench.another(), asyncio.Event()
    running = asyncio.create_task(reconciler.run(stop))
    async with asyncio.timeout(60):
        while len(await bench.rows()) < 2:
            bench.offsets.down = False
            bench.epoch = "e2"
            reconciler.wake()
            await asyncio.sleep(0.01)
        stop.set()
        await running
