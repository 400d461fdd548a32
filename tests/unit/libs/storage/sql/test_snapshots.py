"""Units that only read on SQLite: one snapshot, safe to cancel, closed with the database."""

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import insert, literal_column, select, text

from libs.kernel import TransientError
from libs.storage.sql import Database, open_database
from libs.storage.sql.tables import workers
from tests.waiting import until


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    path = tmp_path / "sluice.db"
    database = open_database(f"sqlite+aiosqlite:///{path}")
    await database.create_schema()
    await database.close()
    return path


def opened(file: Path, busy_timeout_s: float = 30.0) -> Database:
    return open_database(f"sqlite+aiosqlite:///{file}", busy_timeout_s=busy_timeout_s)


async def add(db: Database, name: str) -> None:
    async with db.work() as sql:
        await sql.execute(insert(workers).values(_worker(name)))


def _worker(name: str) -> dict[str, object]:
    values: dict[str, object] = {column.name: 0 for column in workers.columns}
    strings = [c.name for c in workers.columns if c.type.python_type is str]
    return {**values, **dict.fromkeys(strings, name)}


async def test_a_snapshot_does_not_see_what_is_written_after_its_first_statement(
    file: Path,
) -> None:
    db = opened(file)
    async with db.reading() as sql:
        assert await sql.rows(select(workers)) == []
        await add(db, "one")
        assert await sql.rows(select(workers)) == []
    async with db.reading() as sql:
        assert len(await sql.rows(select(workers))) == 1
    await db.close()


async def test_a_statement_that_nobody_waits_for_leaves_its_connection_usable(
    file: Path,
) -> None:
    db = opened(file)
    long = text(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) "
        "SELECT max(i) FROM n"
    )
    for _ in range(12):  # more than there are threads
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), db.reading() as sql:
                await sql.execute(long)
    async with db.reading() as sql:
        assert await sql.scalar(select(literal_column("1"))) == 1
    await db.close()


async def test_a_file_that_cannot_be_opened_is_told_as_everywhere(tmp_path: Path) -> None:
    db = opened(tmp_path / "nowhere" / "sluice.db")
    with pytest.raises(TransientError):
        async with db.reading() as sql:
            await sql.rows(select(workers))
    await db.close()


def readers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "sqlite-reader" in thread.name}


async def test_closing_ends_the_threads(file: Path) -> None:
    before = readers()  # of other tests
    db = opened(file)
    async with db.reading() as sql:
        await sql.rows(select(workers))
    assert readers() - before
    await db.close()

    await until(lambda: not readers() - before)


async def test_whoever_reads_on_after_the_end_is_told_that_the_database_was_closed(
    file: Path,
) -> None:
    db = opened(file)
    async with db.reading() as sql:
        await sql.rows(select(workers))
    await db.close()
    with pytest.raises(TransientError, match="was closed"):
        async with db.reading() as sql:
            await sql.rows(select(workers))
