"""A fresh database for each test: SQLite, and the server that TEST_DATABASE_URL names."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.storage.sql import Database, metadata, open_database

SERVER = os.environ.get("TEST_DATABASE_URL")


@pytest.fixture(params=["sqlite", *(["server"] if SERVER else [])])
async def db(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """The behaviour suites of the SQL port run once for each database."""
    file = f"sqlite+aiosqlite:///{tmp_path / 'test.db'}"
    url = SERVER if SERVER and request.param == "server" else file
    database = open_database(url)
    await database.create_schema()
    yield database
    if url != file:
        async with database.engine.begin() as connection:
            await connection.run_sync(metadata.drop_all)
    await database.close()
