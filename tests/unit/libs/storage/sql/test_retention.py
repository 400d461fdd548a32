"""What is kept for how long: finished rows go, in small batches; what people own stays."""

from collections.abc import Mapping
from dataclasses import fields, replace

import pytest
from sqlalchemy import Table, insert, select

from libs.contracts import OutgoingRecord
from libs.kernel import now_us
from libs.storage.sql import Database, dead_letters, tables
from libs.storage.sql.conversations import create_conversation
from libs.storage.sql.retention import HOUR_S, Retention, prune
from libs.storage.sql.turn_events import append_events, events_after
from libs.storage.sql.turns import Outcome, create_turn, finish
from tests.unit.libs.storage.sql.test_dead_letters import LETTER, RECORD

KEEP_NOTHING = Retention(**{each.name: -1.0 for each in fields(Retention)})
HOUR_US = 3_600_000_000
OLD, YOUNG = now_us() - 2 * HOUR_US, now_us()
CALL = {
    "tenant": "acme",
    "model": "m",
    "purpose": "answer",
    "outcome": "ok",
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "seconds": 1.0,
}
WORKER = {"service": "parser", "host": "h", "pid": 1, "ready": True, "missing": [], "started_at": 1}
ONE_HOUR = Retention(**{each.name: HOUR_S for each in fields(Retention)})


async def sweep(db: Database, retention: Retention, *, limit: int = 100) -> int:
    async with db.work() as sql:
        return await prune(sql, retention, limit=limit)


async def ids(db: Database, table: Table) -> list[str]:
    async with db.reading() as sql:
        key = next(iter(table.primary_key.columns))
        return sorted(row[key.name] for row in await sql.rows(select(key)))


@pytest.mark.parametrize(
    ("table", "key", "at", "row"),
    [
        (tables.outbox, "id", "sent_at", {"topic": "t", "key": "k", "value": b"", "headers": {}}),
        (tables.model_calls, "id", "created_at", CALL),
        (tables.leases, "name", "expires_at", {"holder": "h"}),
        (tables.workers, "id", "seen_at", WORKER),
    ],
)
async def test_finished_rows_go_when_their_time_is_over(
    db: Database, table: Table, key: str, at: str, row: Mapping[str, object]
) -> None:
    rows = [{key: name, at: time} for name, time in (("old", OLD), ("young", YOUNG))]
    if table is tables.outbox:
        row = {**row, "not_before": 0, "created_at": 0}
    async with db.work() as sql:
        for each in rows:
            await sql.execute(insert(table).values(**row, **each))
    await sweep(db, ONE_HOUR)
    assert await ids(db, table) == ["young"]


async def test_an_unsent_event_and_an_unhandled_letter_stay_whatever_their_age(
    db: Database,
) -> None:
    async with db.work() as sql:
        await sql.emit_record(OutgoingRecord("documents.uploaded.v1", "d1", b"v"))
        for letter_id in ("handled", "unhandled"):
            await dead_letters.store(sql, LETTER | {"id": letter_id}, RECORD)
        await dead_letters.redrive(sql, "acme", "handled")
    unsent = await ids(db, tables.outbox)
    await sweep(db, KEEP_NOTHING)
    assert await ids(db, tables.outbox) == unsent
    assert await ids(db, tables.dead_letters) == ["unhandled"]


async def test_a_turn_that_ended_long_ago_is_still_followed_to_its_whole_answer(
    db: Database,
) -> None:
    async with db.work() as sql:
        conversation = await create_conversation(sql, "acme")
        turns = [await create_turn(sql, "acme", conversation, "?", 0) for _ in range(2)]
        for turn in turns:
            said = [("status", {"status": "planned"}), ("delta", {"text": "Yes."})]
            await append_events(sql, "acme", turn["id"], said)
        await finish(sql, "acme", turns[0]["id"], Outcome("done", answer="Yes."))
    await sweep(db, KEEP_NOTHING)
    async with db.reading() as sql:
        ended, running = [await events_after(sql, "acme", turn["id"], 0) for turn in turns]
    assert [(event.seq, event.type, event.data["answer"]) for event in ended] == [
        (4, "done", "Yes.")
    ]
    assert [event.seq for event in running] == [1, 2, 3]


async def test_a_sweep_is_a_bounded_bite(db: Database) -> None:
    async with db.work() as sql:
        for number in range(5):
            row = {"name": f"l{number}", "holder": "h", "expires_at": OLD}
            await sql.execute(insert(tables.leases).values(**row))
    keep = replace(ONE_HOUR, leases_s=0.0)
    assert [await sweep(db, keep, limit=2) for _ in range(4)] == [2, 2, 1, 0]
