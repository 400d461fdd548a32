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


async def keep(db: Database, **changed: object) -> bool:
    async with db.work() as sql:
        return await dead_letters.store(sql, LETTER | changed, RECORD)


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
    first_try = {"ce_id": "1", "origin": "documents.uploaded.v1/1/7"}
    assert (await emitted(db))[1:] == [("documents.uploaded.v1.parser.retry", first_try)]
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


async def test_nobodys_letter_is_shown_to_every_administrator_without_what_it_holds(
    db: Database,
) -> None:
    await keep(db, tenant="", value=b"secret", key="secret", detail="secret")
    async with db.reading() as sql:
        (letter,) = await dead_letters.listing(sql, "rival")
        assert letter == await dead_letters.load(sql, "acme", "l1")
    assert (letter.topic, letter.partition, letter.offset) == (LETTER["topic"], 1, 7)
    assert (letter.reason, letter.size_bytes) == ("bug", len(b"secret"))
    assert "secret" not in repr(letter)


async def test_nobodys_letter_is_sent_again_and_thrown_away_by_any_administrator(
    db: Database,
) -> None:
    await keep(db, tenant="")
    async with db.work() as sql:
        await dead_letters.redrive(sql, "acme", "l1")
        await dead_letters.purge(sql, "rival", "l1")
        assert await dead_letters.listing(sql, "acme", redriven=True) == []
    assert [topic for topic, _ in (await emitted(db))[1:]] == ["documents.uploaded.v1.parser.retry"]


async def test_pages_of_letters_hold_each_once_newest_first(db: Database) -> None:
    for number in range(7):
        await keep(db, id=f"l{number}", created_at=number // 3)
    seen: list[str] = []
    before = None
    async with db.reading() as sql:
        while page := await dead_letters.listing(sql, "acme", before=before, limit=2):
            seen += [letter.id for letter in page]
            before = (page[-1].created_at, page[-1].id)
    assert seen == ["l6", "l5", "l4", "l3", "l2", "l1", "l0"]
