"""Dead letters: kept once, seen by their tenant alone, sent again once."""

import pytest
from sqlalchemy import select

from libs.contracts import OutgoingRecord
from libs.kernel import ConflictError, NotFoundError
from libs.storage.sql import Database, dead_letters
from libs.storage.sql.tables import outbox

LETTER: dict[str, object] = {
    "id": "l1",
    "tenant": "acme",
    "topic": "documents.uploaded.v1",
    "group_id": "parser",
    "partition": 1,
    "offset": 7,
    "key": "d1",
    "value": b"v",
    "headers": {"ce_id": "1", "attempt": "8"},
    "reason": "bug",
    "detail": "KeyError",
    "attempts": 8,
    "created_at": 1,
}
RECORD = OutgoingRecord("documents.uploaded.v1.parser.dlq", "d1", b"v")


async def keep(db: Database) -> bool:
    async with db.work() as sql:
        return await dead_letters.store(sql, LETTER, RECORD)


async def emitted(db: Database) -> list[tuple[str, dict[str, str]]]:
    async with db.reading() as sql:
        rows = await sql.rows(select(outbox).order_by(outbox.c.created_at))
    return [(row["topic"], row["headers"]) for row in rows]


async def test_a_letter_and_its_record_are_kept_once(db: Database) -> None:
    assert await keep(db)
    assert not await keep(db)
    assert [topic for topic, _ in await emitted(db)] == [RECORD.topic]


async def test_a_redriven_letter_goes_back_to_its_group_as_a_first_attempt(db: Database) -> None:
    await keep(db)
    async with db.work() as sql:
        await dead_letters.redrive(sql, "acme", "l1")
    assert (await emitted(db))[1:] == [("documents.uploaded.v1.parser.retry", {"ce_id": "1"})]
    async with db.work() as sql:
        with pytest.raises(ConflictError):
            await dead_letters.redrive(sql, "acme", "l1")
        assert await dead_letters.listing(sql, "acme") == []
        assert len(await dead_letters.listing(sql, "acme", redriven=True)) == 1


async def test_another_tenants_letter_does_not_exist(db: Database) -> None:
    await keep(db)
    async with db.work() as sql:
        assert await dead_letters.listing(sql, "rival") == []
        for act in (dead_letters.load, dead_letters.redrive, dead_letters.purge):
            with pytest.raises(NotFoundError):
                await act(sql, "rival", "l1")
        await dead_letters.purge(sql, "acme", "l1")
        assert await dead_letters.listing(sql, "acme", group_id="parser") == []
