"""A database of its own for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.storage.sql import Database, open_database


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    await database.create_schema()
    yield database
    await database.close()
