"""A fresh database for each test, on SQLite or on MariaDB."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import delete, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from libs.kernel import new_id
from libs.storage.sql import Database, metadata, open_database
from tests.servers.mariadb import MariaDb

# A MySQL of one's own, on which databases may be made: used in place of MariaDB.
OWN_SERVER = os.environ.get("TEST_DATABASE_URL")


BACKENDS = ["sqlite", pytest.param("mariadb", marks=pytest.mark.on_server)]


@pytest.fixture(scope="session")
def sql_server(request: pytest.FixtureRequest) -> str:
    """The address of a MySQL or MariaDB, without a database."""
    if OWN_SERVER:
        return OWN_SERVER
    server: MariaDb = request.getfixturevalue("mariadb")
    return server.url()


@pytest.fixture(params=BACKENDS)
def bare_sql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without tables."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
        return
    with empty_database(request.getfixturevalue("sql_server")) as url:
        yield url


@pytest.fixture(params=BACKENDS)
def sql_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database with every table, and no rows."""
    if request.param == "sqlite":
        asyncio.run(_make_tables(sqlite_url(tmp_path)))
        yield sqlite_url(tmp_path)
        return
    url = request.getfixturevalue("shared_tables")
    yield url
    asyncio.run(_execute(url, "CALL forget_all()"))


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    """A SQLite database with every table; the tests of the SQL port have theirs on each kind."""
    async with sqlite(tmp_path) as database:
        yield database


@pytest.fixture(scope="session")
def shared_tables(sql_server: str) -> Iterator[str]:
    """One database for all tests: making twenty tables takes longer than most tests."""
    with empty_database(sql_server) as url:
        asyncio.run(_make_tables(url))
        deletes = " ".join(str(delete(table)) + ";" for table in metadata.sorted_tables)
        asyncio.run(_execute(url, f"CREATE PROCEDURE forget_all() BEGIN {deletes} END"))
        yield url


@contextmanager
def empty_database(server_url: str) -> Iterator[str]:
    """A new database on a MySQL or MariaDB, dropped in the end."""
    name = f"test_{new_id()}"
    asyncio.run(_execute(server_url, f"CREATE DATABASE {name}"))
    yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    asyncio.run(_execute(server_url, f"DROP DATABASE {name}"))


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[Database]:
    """A database in a file of the folder, with every table."""
    database = open_database(sqlite_url(folder))
    await database.create_schema()
    yield database
    await database.close()


def sqlite_url(folder: Path) -> str:
    return f"sqlite+aiosqlite:///{folder / 'sluice.db'}"


async def _make_tables(url: str) -> None:
    database = open_database(url)
    await database.create_schema()
    await database.close()


async def _execute(url: str, statement: str) -> None:
    """Outside any transaction; a test that left a lock behind fails here after seconds."""
    engine = create_async_engine(
        url,
        isolation_level="AUTOCOMMIT",
        connect_args={
            "init_command": "SET SESSION lock_wait_timeout=5, innodb_lock_wait_timeout=5"
        },
    )
    async with engine.connect() as connection:
        await connection.exec_driver_sql(statement)
    await engine.dispose()
