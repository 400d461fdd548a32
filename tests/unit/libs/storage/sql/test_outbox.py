"""Outbox rows: one sender at a time, and what was sent is known."""

import asyncio

from sqlalchemy import select, update

from libs.contracts import OutgoingRecord, Position
from libs.kernel import now_us
from libs.storage.sql import Database, OutboxRow
from libs.storage.sql.outbox import (
    SentRow,
    backlog,
    claim_due,
    mark_sent,
    next_due,
    postpone,
    rows_by_key,
)
from libs.storage.sql.tables import outbox

HOUR_US = 3_600_000_000
TOPIC = "documents.uploaded.v1"


async def commit(db: Database, *keys: str, topic: str = TOPIC, not_before: int = 0) -> None:
    async with db.work() as sql:
        for key in keys:
            await sql.emit_record(OutgoingRecord(topic, key, b"v"), not_before=not_before)


async def let_claims_lapse(db: Database) -> None:
    async with db.work() as sql:
        await sql.execute(update(outbox).values(not_before=0))


async def claim(db: Database, limit: int = 100, claim_us: int = HOUR_US) -> list[OutboxRow]:
    async with db.work() as sql:
        return await claim_due(sql, claim_us=claim_us, limit=limit)


def sent(row: OutboxRow, offset: int = 0, epoch: str = "e1") -> SentRow:
    return SentRow(row.id, Position(row.record.topic, 2, offset), epoch)


async def test_the_committing_process_has_the_first_claim(db: Database) -> None:
    await commit(db, "d1")
    assert await claim(db) == []


async def test_two_sweepers_share_what_is_due_and_nobody_takes_a_row_twice(db: Database) -> None:
    keys = [f"d{number}" for number in range(20)]
    await commit(db, *keys)
    await let_claims_lapse(db)
    taken = await asyncio.gather(*(claim(db, limit=7) for _ in range(4)))
    assert max(len(rows) for rows in taken) == 7
    while rows := await claim(db, limit=7):  # a server's sweepers pass over what others look at
        taken.append(rows)
    assert sorted(row.record.key for rows in taken for row in rows) == sorted(keys)
    assert await claim(db) == []


async def test_a_claim_that_ran_out_is_free_again(db: Database) -> None:
    await commit(db, "d1")
    await let_claims_lapse(db)
    assert len(await claim(db, claim_us=0)) == 1
    assert len(await claim(db)) == 1


async def test_rows_come_back_as_they_were_committed(db: Database) -> None:
    record = OutgoingRecord(TOPIC, "d1", b"\x00v", {"ce_id": "1"}, partition=3)
    async with db.work() as sql:
        await sql.emit_record(record)
    await let_claims_lapse(db)
    assert [row.record for row in await claim(db)] == [record]


async def test_a_delayed_row_waits_for_its_time(db: Database) -> None:
    later = now_us() + HOUR_US
    await commit(db, "d1", not_before=later)
    assert await claim(db) == []
    async with db.reading() as sql:
        assert await next_due(sql) == later


async def test_sent_rows_keep_where_they_went_and_are_never_due(db: Database) -> None:
    await commit(db, "d1", "d2")
    await let_claims_lapse(db)
    rows = await claim(db)
    async with db.work() as sql:
        await mark_sent(sql, [sent(row, offset) for offset, row in enumerate(rows)])
        await postpone(sql, [row.id for row in rows], until=0)  # a late failure changes nothing
    assert await claim(db) == []
    async with db.reading() as sql:
        found = await sql.rows(select(outbox).order_by(outbox.c.offset))
        assert await next_due(sql) is None
    assert [(r["partition"], r["offset"], r["broker_epoch"]) for r in found] == [
        (2, 0, "e1"),
        (2, 1, "e1"),
    ]


async def test_the_backlog_counts_delayed_rows_but_only_due_ones_are_late(db: Database) -> None:
    async with db.reading() as sql:
        assert (await backlog(sql)).rows == 0
    await commit(db, "d1", "d2", not_before=now_us() + HOUR_US)
    async with db.reading() as sql:
        waiting = await backlog(sql)
    assert (waiting.rows, waiting.oldest_due_at) == (2, None)
    await let_claims_lapse(db)
    async with db.reading() as sql:
        oldest = (await backlog(sql)).oldest_due_at
    assert oldest is not None
    assert oldest <= now_us()


async def test_the_rows_of_a_key_may_be_on_any_of_its_topics(db: Database) -> None:
    retry = f"{TOPIC}.parser.retry"
    await commit(db, "d1", "d2")
    await commit(db, "d1", topic=retry)
    await commit(db, "d1", topic=f"{TOPIC}.parser.dlq")
    async with db.reading() as sql:
        found = await rows_by_key(sql, [TOPIC, retry], ["d1", "d2", "d3"])
    topics = {key: sorted(row["topic"] for row in rows) for key, rows in found.items()}
    assert topics == {"d1": [TOPIC, retry], "d2": [TOPIC]}


async def test_what_a_clock_that_ran_ahead_put_off_goes_out_at_once(db: Database) -> None:
    await commit(db, "d1", "waits", not_before=now_us() + HOUR_US)
    async with db.work() as sql:
        ahead = update(outbox).where(outbox.c.key == "d1")
        await sql.execute(ahead.values(not_before=now_us() + 48 * HOUR_US))
    async with db.reading() as sql:
        due_at = await next_due(sql)
    assert due_at is not None
    assert due_at <= now_us()
    assert [row.record.key for row in await claim(db, claim_us=1_000_000)] == ["d1"]
