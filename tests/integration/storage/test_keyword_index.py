"""The keyword index, in a folder and on Elasticsearch."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.kernel import new_id
from libs.service.search import open_search
from libs.service.settings import PlatformSettings
from libs.storage.ports import KeywordIndex
from tests.servers.elasticsearch import Elasticsearch
from tests.suites.search_index import KeywordIndexSuite, row


@pytest.fixture(params=["tantivy", pytest.param("elasticsearch", marks=pytest.mark.on_server)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> PlatformSettings:
    """What makes a process use this kind."""
    if request.param == "tantivy":
        return PlatformSettings(home=tmp_path)
    server: Elasticsearch = request.getfixturevalue("elasticsearch")
    return PlatformSettings(home=tmp_path, elasticsearch_url=server.url())


@pytest.fixture
def name() -> str:
    return f"keywords_{new_id()}"


@pytest.fixture
async def index(settings: PlatformSettings, name: str) -> AsyncIterator[KeywordIndex]:
    async with open_search(settings, writes=True) as search:
        await search.keywords.ensure(name)
        yield search.keywords
        await search.keywords.drop(name)


class TestKeywordIndex(KeywordIndexSuite):
    @pytest.fixture
    def name(self) -> str:
        return f"keywords_{new_id()}"


async def test_concurrent_writes_are_all_there_when_they_return(
    index: KeywordIndex, name: str
) -> None:
    await asyncio.gather(*(index.upsert(name, [row(f"c{i}", "text")]) for i in range(100)))
    assert await index.count(name, "t") == 100


async def test_another_process_reads_what_was_written(
    index: KeywordIndex, name: str, settings: PlatformSettings
) -> None:
    await index.upsert(name, [row("c", "text")])
    async with open_search(settings) as reading:
        assert await reading.keywords.count(name, "t") == 1
        await index.delete(name, "t", "d1")
        assert await reading.keywords.search(name, "t", ["text"], 10) == []


async def test_more_rows_than_a_page_are_all_listed_once(index: KeywordIndex, name: str) -> None:
    rows = [row(f"c{i}", "text") for i in range(5_001)]
    await index.upsert(name, rows)
    pages = [page async for page in index.entries(name, "t")]
    assert [len(page) for page in pages] == [5_000, 1]
    listed = [entry.chunk_id for page in pages for entry in page]
    assert sorted(listed) == sorted(each.chunk_id for each in rows)
