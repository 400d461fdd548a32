"""Heartbeats: who lives and what they wait for."""

from sqlalchemy import update

from libs.kernel import now_us
from libs.storage.sql import Database, workers
from libs.storage.sql.tables import workers as table
from libs.storage.sql.workers import GONE_AFTER_US, Worker

PARSER = Worker("w1", "parser", "host", 1, started_at=1)
CHUNKER = Worker("w2", "chunker", "host", 2, started_at=2)


async def living(db: Database) -> list[tuple[str, bool, list[str]]]:
    async with db.reading() as sql:
        found = await workers.living(sql)
    return [(row["service"], row["ready"], row["missing"]) for row in found]


async def test_each_beat_says_what_is_missing_now(db: Database) -> None:
    async with db.work() as sql:
        await workers.beat(sql, PARSER, ["kafka"])
        await workers.beat(sql, CHUNKER, [])
    assert await living(db) == [("chunker", True, []), ("parser", False, ["kafka"])]
    async with db.work() as sql:
        await workers.beat(sql, PARSER, [])
    assert await living(db) == [("chunker", True, []), ("parser", True, [])]


async def test_the_silent_and_those_who_left_are_not_among_the_living(db: Database) -> None:
    async with db.work() as sql:
        await workers.beat(sql, PARSER, [])
        await workers.beat(sql, CHUNKER, [])
        silent = update(table).where(table.c.id == PARSER.id)
        await sql.execute(silent.values(seen_at=now_us() - GONE_AFTER_US - 1))
        await workers.leave(sql, CHUNKER.id)
    assert await living(db) == []
