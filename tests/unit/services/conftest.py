"""What several services' tests share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.storage.sql import open_database
from tests.document_life import Life, LifeDatabase


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[Life]:
    made = Life(LifeDatabase(open_database(f"sqlite+aiosqlite:///{tmp_path / 's.db'}").engine))
    await made.open()
    yield made
    await made.db.close()
