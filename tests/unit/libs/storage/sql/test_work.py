"""Units of work: all or nothing, in turn, and with errors of our own."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text, update

from libs.contracts import OutgoingRecord
from libs.kernel import ConflictError, PermanentError, TransientError, now_us
from libs.storage.sql import Database, OutboxRow, UnitOfWork, open_database
from libs.storage.sql.tables import broker_epoch, leases, outbox
from libs.storage.sql.work import MAX_EVENT_BYTES

RECORD = OutgoingRecord("documents.uploaded.v1", "d1", b"value", {"ce_id": "1"})


async def add_lease(sql: UnitOfWork, name: str = "a") -> None:
    await sql.execute(insert(leases).values(name=name, holder="me", expires_at=0))


async def lease_names(db: Database) -> list[str]:
    async with db.reading() as sql:
        return [row["name"] for row in await sql.rows(select(leases.c.name))]


async def test_a_unit_that_fails_leaves_nothing_behind_and_announces_nothing(db: Database) -> None:
    relayed: list[OutboxRow] = []

    async def relay(rows: Sequence[OutboxRow]) -> None:
        relayed.extend(rows)

    db.after_commit = relay

    async def fail() -> None:
        async with db.work() as sql:
            await add_lease(sql)
            await sql.emit_record(RECORD)
            raise ValueError("a bug in the handler")

    with pytest.raises(ValueError, match="a bug"):
        await fail()
    assert await lease_names(db) == []
    assert relayed == []


async def test_rows_are_relayed_after_the_commit_and_seen_by_everybody_then(db: Database) -> None:
    seen: list[int] = []

    async def relay(rows: Sequence[OutboxRow]) -> None:
        async with db.work() as sql:  # would wait for itself, were the first unit still open
            seen.extend(row["id"] == rows[0].id for row in await sql.rows(select(outbox)))

    db.after_commit = relay
    async with db.work() as sql:
        await sql.emit_record(RECORD)
    assert seen == [True]


async def test_a_reading_unit_writes_nothing_and_keeps_its_snapshot(db: Database) -> None:
    async with db.reading() as before:
        assert await before.rows(select(leases)) == []
        async with db.work() as sql:
            await add_lease(sql)
        assert await before.rows(select(leases)) == []
        with pytest.raises(RuntimeError, match="read-only"):
            await add_lease(before, "b")
        with pytest.raises(RuntimeError, match="read-only"):
            await before.emit_record(RECORD)
    assert await lease_names(db) == ["a"]


async def test_a_broken_uniqueness_rule_is_a_conflict_and_the_unit_may_go_on(db: Database) -> None:
    async with db.work() as sql:
        await add_lease(sql)
        with pytest.raises(ConflictError, match=r"^[a-z :]+$"):  # no table, no column
            await add_lease(sql)
        await add_lease(sql, "b")
    assert await lease_names(db) == ["a", "b"]


async def test_a_unit_inside_a_unit_is_refused_instead_of_waiting_for_ever(db: Database) -> None:
    async with db.work():
        with pytest.raises(RuntimeError, match="inside another"):
            async with db.work():
                pass
    async with db.work() as sql:
        await add_lease(sql)
    assert await lease_names(db) == ["a"]


async def test_an_event_that_is_a_payload_is_refused(db: Database) -> None:
    big = OutgoingRecord("documents.uploaded.v1", "d1", b"x" * (MAX_EVENT_BYTES + 1))
    async with db.work() as sql:
        with pytest.raises(PermanentError, match="event-too-large"):
            await sql.emit_record(big)


async def test_fifty_writers_and_fifty_readers_at_once_all_get_through(db: Database) -> None:
    async with db.work() as sql:
        await sql.execute(insert(broker_epoch).values(id=1, epoch="0", seen_at=now_us()))

    async def write() -> None:
        async with db.work() as sql:
            value = int(await sql.scalar(select(broker_epoch.c.epoch).with_for_update()))
            await sql.execute(update(broker_epoch).values(epoch=str(value + 1)))

    async def read() -> None:
        async with db.reading() as sql:
            await sql.rows(select(broker_epoch))

    await asyncio.gather(*(step() for _ in range(50) for step in (write, read)))
    async with db.reading() as sql:
        assert await sql.scalar(select(broker_epoch.c.epoch)) == "50"


async def test_cancelled_units_roll_back_and_everything_stays_usable(db: Database) -> None:
    async def write(name: str, entered: asyncio.Event) -> None:
        async with db.work() as sql:
            entered.set()
            await add_lease(sql, name)
            await asyncio.Event().wait()

    first, second = asyncio.Event(), asyncio.Event()
    holder = asyncio.create_task(write("holder", first))
    await first.wait()
    queued = asyncio.create_task(write("queued", second))
    await asyncio.sleep(0)
    for task in (queued, holder):
        task.cancel()
    await asyncio.gather(queued, holder, return_exceptions=True)

    for steps in range(40):  # cancelled at every point between its start and its end
        task = asyncio.create_task(write("cancelled", asyncio.Event()))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async with asyncio.timeout(60), db.work() as sql:
        await add_lease(sql, "after")
    assert await lease_names(db) == ["after"]


async def test_a_lock_of_another_process_is_waited_for_and_then_transient(tmp_path: Path) -> None:
    path = tmp_path / "locked.db"
    db = open_database(f"sqlite+aiosqlite:///{path}", busy_timeout_s=0.05)
    await db.create_schema()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransientError, match="locked"):
        async with db.work() as sql:
            await add_lease(sql)
    other.execute("ROLLBACK")
    other.close()
    async with db.work() as sql:
        await add_lease(sql)
    assert await lease_names(db) == ["a"]
    await db.close()


async def test_a_writer_gets_its_turn_between_those_of_a_busy_process(tmp_path: Path) -> None:
    """Its gaps come where SQLite's own waiting, in steps of 100 ms, would never look."""
    path = tmp_path / "busy.db"
    db = open_database(f"sqlite+aiosqlite:///{path}", busy_timeout_s=10)
    await db.create_schema()
    over = threading.Event()

    def write_again_and_again() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other:
            while not over.is_set():
                other.execute("BEGIN IMMEDIATE")
                time.sleep(0.19)
                other.execute("COMMIT")
                time.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(write_again_and_again))
        try:
            for name in ("a", "b", "c"):
                await asyncio.sleep(0.02)
                async with db.work() as sql:
                    await add_lease(sql, name)
        finally:
            over.set()
    assert await lease_names(db) == ["a", "b", "c"]
    await db.close()


async def test_a_full_disk_is_transient_and_the_unit_is_undone(tmp_path: Path) -> None:
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'full.db'}")
    await db.create_schema()

    async def write_too_much() -> None:
        async with db.work() as sql:
            pages = await sql.scalar(text("PRAGMA page_count"))
            await sql.execute(text(f"PRAGMA max_page_count={pages}"))
            for number in range(100):
                await sql.emit_record(OutgoingRecord("t", str(number), b"x" * 100_000))

    with pytest.raises(TransientError, match="full"):
        await write_too_much()
    async with db.reading() as sql:
        assert await sql.rows(select(outbox)) == []
    await db.close()


async def test_a_database_that_is_not_there_or_has_no_tables_yet_is_transient(
    tmp_path: Path,
) -> None:
    nowhere = open_database(f"sqlite+aiosqlite:///{tmp_path / 'no' / 'folder' / 'x.db'}")
    with pytest.raises(TransientError):
        await nowhere.create_schema()
    bare = open_database(f"sqlite+aiosqlite:///{tmp_path / 'bare.db'}")
    with pytest.raises(TransientError, match="no such table"):
        async with bare.reading() as sql:
            await sql.rows(select(leases))
    for db in (nowhere, bare):
        await db.close()


async def test_a_connection_that_is_stopped_while_it_closes_still_ends(tmp_path: Path) -> None:
    """What a cancelled statement does to its connection when the cancelled task ends quickly."""
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'closing.db'}")
    connection = await db.engine.raw_connection()
    driver = connection.driver_connection
    assert driver is not None
    connection.detach()
    closing = asyncio.create_task(driver.close())
    await asyncio.sleep(0)
    driver.stop()
    async with asyncio.timeout(60):
        await closing
