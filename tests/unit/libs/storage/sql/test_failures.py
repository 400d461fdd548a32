"""SQL on a disk that takes no writes: it is named, nothing is half done, and it goes on after."""

import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError, OperationalError

from libs.kernel import DiskError, TransientError
from libs.storage.sql import Database, api_keys, open_database
from libs.storage.sql.failures import sql_errors
from libs.storage.sql.tables import api_keys as table


@pytest.fixture
async def file_db(tmp_path: Path) -> Database:
    return open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")


@contextmanager
def no_file_may_grow() -> Iterator[None]:
    """Writes fail as those on a disk that ends here."""
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, allowed[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)
        signal.signal(signal.SIGXFSZ, ignored)


async def make_key(db: Database) -> None:
    async with db.work() as sql:
        await api_keys.create(sql, "t", role="member", name="k" * 100)


async def count(db: Database) -> int:
    async with db.reading() as sql:
        return int(await sql.scalar(select(func.count()).select_from(table)))


async def test_a_write_that_finds_no_room_names_the_disk_and_works_later(
    file_db: Database,
) -> None:
    await file_db.create_schema()
    await make_key(file_db)
    with no_file_may_grow():
        for _ in range(2):
            with pytest.raises(DiskError):
                await make_key(file_db)
        assert await count(file_db) == 1  # reading goes on
    await make_key(file_db)
    assert await count(file_db) == 2
    await file_db.close()


async def test_a_full_database_is_a_full_disk(file_db: Database) -> None:
    await file_db.create_schema()

    async def fill() -> None:
        async with file_db.work() as sql:
            pages = await sql.scalar(text("PRAGMA page_count"))
            await sql.execute(text(f"PRAGMA max_page_count={pages}"))
            for _ in range(1000):
                await api_keys.create(sql, "t", role="member", name="k" * 100)

    with pytest.raises(DiskError, match="full") as caught:
        await fill()
    assert caught.value.full
    assert await count(file_db) == 0
    await file_db.close()


async def test_a_database_that_only_reads_is_named(file_db: Database, tmp_path: Path) -> None:
    await file_db.create_schema()
    await make_key(file_db)
    await file_db.close()
    fixed = open_database(f"sqlite+aiosqlite:///file:{tmp_path / 'sluice.db'}?mode=ro&uri=true")
    with pytest.raises(DiskError, match="readonly") as caught:
        await make_key(fixed)
    assert not caught.value.full
    assert await count(fixed) == 1
    await fixed.close()


async def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "sluice.db").mkdir()
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    for use in (db.create_schema, lambda: make_key(db), lambda: count(db)):
        with pytest.raises(DiskError, match="unable to open") as caught:
            await use()
        assert not caught.value.full
    await db.close()


def error(code: int) -> DBAPIError:
    cause = sqlite3.OperationalError("x")
    cause.sqlite_errorcode = code
    return OperationalError("INSERT", {}, cause)


@pytest.mark.parametrize(
    ("code", "full"),
    [
        (sqlite3.SQLITE_FULL, True),
        (sqlite3.SQLITE_READONLY, False),
        (sqlite3.SQLITE_READONLY_DBMOVED, False),
        (sqlite3.SQLITE_CANTOPEN, False),
        (sqlite3.SQLITE_IOERR_WRITE, False),
    ],
)
def test_details_of_a_code_change_nothing(code: int, full: bool) -> None:
    with pytest.raises(DiskError) as caught, sql_errors():
        raise error(code)
    assert caught.value.full is full


def test_a_busy_database_is_not_blamed_on_the_disk() -> None:
    with pytest.raises(TransientError) as caught, sql_errors():
        raise error(sqlite3.SQLITE_BUSY)
    assert caught.value.missing == ""


def test_a_full_server_is_a_full_disk() -> None:
    with pytest.raises(DiskError), sql_errors():
        raise OperationalError("INSERT", {}, Exception(1021, "Disk full (/tmp)"))
