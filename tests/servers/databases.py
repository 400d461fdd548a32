"""A fresh database for each test, on SQLite and on MariaDB."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from libs.kernel import new_id
from libs.storage.sql import Database, open_database
from tests.servers.mariadb import MariaDb

# A MySQL of one's own, on which databases may be made: used in place of MariaDB.
OWN_SERVER = os.environ.get("TEST_DATABASE_URL")


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=pytest.mark.on_server)])
async def sql_url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """The address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path / 'test.db'}"
        return
    server: MariaDb | None = None if OWN_SERVER else request.getfixturevalue("mariadb")
    async for url in empty_database(server.url() if server else str(OWN_SERVER)):
        yield url


@pytest.fixture
async def db(sql_url: str) -> AsyncIterator[Database]:
    """A database with every table: the suites of the SQL port run on each kind."""
    database = open_database(sql_url)
    await database.create_schema()
    yield database
    await database.close()


async def empty_database(server_url: str) -> AsyncIterator[str]:
    """A new database on a MySQL or MariaDB, dropped in the end."""
    name = f"test_{new_id()}"
    engine = create_async_engine(server_url, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            await connection.execute(text(f"CREATE DATABASE {name}"))
        url = make_url(server_url).set(database=name)
        yield url.render_as_string(hide_password=False)
        async with engine.connect() as connection:
            await connection.execute(text(f"DROP DATABASE {name}"))
    finally:
        await engine.dispose()
