"""The tests of the SQL port run on each kind of database."""

from collections.abc import AsyncIterator

import pytest

from libs.storage.sql import Database, open_database


@pytest.fixture
async def db(sql_url: str) -> AsyncIterator[Database]:
    """A database with every table."""
    database = open_database(sql_url)
    yield database
    await database.close()
