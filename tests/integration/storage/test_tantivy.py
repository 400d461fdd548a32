"""What only a keyword index in a folder does: one process writes, others follow."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.kernel import TransientError
from libs.storage.keywords import TantivyKeywords
from tests.suites.search_index import row

NAME = "keywords_v1"


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[TantivyKeywords]:
    index = TantivyKeywords(tmp_path, writes=True)
    await index.ensure(NAME)
    yield index
    await index.close()


async def test_a_reader_sees_what_the_writer_wrote_and_survives_it(
    index: TantivyKeywords, tmp_path: Path
) -> None:
    reader = TantivyKeywords(tmp_path)
    await reader.ensure(NAME)
    await index.upsert(NAME, [row("c", "text")])
    assert await reader.count(NAME, "t") == 1
    await index.close()
    again = TantivyKeywords(tmp_path, writes=True)
    await again.ensure(NAME)
    await again.delete(NAME, "t", "d1")
    assert await reader.count(NAME, "t") == 0
    await again.close()
    await reader.close()


async def test_a_second_writer_is_told_why(index: TantivyKeywords, tmp_path: Path) -> None:
    second = TantivyKeywords(tmp_path, writes=True)
    with pytest.raises(TransientError, match="only one indexer may own it"):
        await second.ensure(NAME)
    await second.close()


async def test_a_reader_waits_for_the_folder(tmp_path: Path) -> None:
    reader = TantivyKeywords(tmp_path / "missing")
    with pytest.raises(TransientError, match="cannot be read"):
        await reader.ensure(NAME)
    await reader.close()


async def test_a_cancelled_write_does_not_stop_the_others(index: TantivyKeywords) -> None:
    writes = [asyncio.create_task(index.upsert(NAME, [row(f"c{i}", "text")])) for i in range(3)]
    await asyncio.sleep(0)
    writes[0].cancel()
    await asyncio.gather(*writes, return_exceptions=True)
    await index.upsert(NAME, [row("last", "text")])
    found = await index.search(NAME, "t", ["text"], 10)
    assert {"c1", "c2", "last"} <= {hit.chunk_id for hit in found}
