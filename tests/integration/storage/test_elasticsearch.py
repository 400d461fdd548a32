"""What only Elasticsearch does: refusals by row, blocks, and errors that say what to do."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch

from libs.kernel import DiskError, PermanentError, TransientError, new_id
from libs.storage.keywords import elasticsearch as adapter
from libs.storage.keywords.elasticsearch import ElasticsearchKeywords
from libs.storage.ports import IndexRow
from tests.servers.elasticsearch import Elasticsearch
from tests.suites.search_index import row

pytestmark = pytest.mark.on_server


@pytest.fixture
def name() -> str:
    return f"keywords_{new_id()}"


@pytest.fixture
async def index(elasticsearch: Elasticsearch, name: str) -> AsyncIterator[ElasticsearchKeywords]:
    index = ElasticsearchKeywords(elasticsearch.url())
    await index.ensure(name)
    yield index
    await index.drop(name)
    await index.close()


@pytest.fixture
async def client(elasticsearch: Elasticsearch) -> AsyncIterator[AsyncElasticsearch]:
    """Of somebody else, who changes things by hand."""
    async with AsyncElasticsearch(elasticsearch.url()) as client:
        yield client


async def test_a_refused_row_is_named_and_the_others_are_written(
    index: ElasticsearchKeywords, name: str
) -> None:
    outside = IndexRow("wrong", "t", "d1", 2**63, "", terms=["text"])
    with pytest.raises(PermanentError, match=r"refuses chunk wrong: .*long") as refusal:
        await index.upsert(name, [row("a", "text"), outside, row("b", "text")])
    assert refusal.value.reason == "row-refused"
    assert await index.count(name, "t") == 2


async def test_nobody_makes_an_index_by_writing_to_a_name_that_has_no_alias(
    index: ElasticsearchKeywords, client: AsyncElasticsearch, name: str
) -> None:
    with pytest.raises(TransientError, match=r"no such index|not an alias"):
        await index.upsert(f"{name}_late", [row("c", "text")])
    assert not await client.indices.get(index=f"{name}_late*")


async def test_an_index_that_somebody_made_under_the_name_is_refused(
    index: ElasticsearchKeywords, client: AsyncElasticsearch, name: str
) -> None:
    await client.indices.create(index=f"{name}_taken")
    try:
        with pytest.raises(TransientError, match="same name"):
            await index.ensure(f"{name}_taken")
    finally:
        await client.indices.delete(index=f"{name}_taken")


async def test_fields_that_are_not_ours_are_refused(
    index: ElasticsearchKeywords, client: AsyncElasticsearch, name: str
) -> None:
    mapping = await client.indices.get_mapping(index=name)
    (found,) = mapping.values()
    assert found["mappings"]["dynamic"] == "strict"


async def test_a_disk_that_is_nearly_full_is_told_as_a_full_disk_until_there_is_room(
    index: ElasticsearchKeywords, client: AsyncElasticsearch, name: str
) -> None:
    await index.upsert(name, [row("before", "text")])
    await _block(client, name, True)  # as the flood-stage watermark does
    with pytest.raises(DiskError, match="disk is nearly full"):
        await index.upsert(name, [row("c", "text")])
    assert await index.count(name, "t") == 1  # it can be searched
    await _block(client, name, None)
    await index.upsert(name, [row("c", "text")])
    assert await index.count(name, "t") == 2


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("{wrong_password}", "refuses the name or password: correct them in ELASTICSEARCH_URL"),
        ("http://127.0.0.1:1", "cannot be reached"),
    ],
)
async def test_a_server_that_cannot_be_used_is_named_with_what_to_do(
    elasticsearch: Elasticsearch, url: str, said: str
) -> None:
    index = ElasticsearchKeywords(url.format(wrong_password=elasticsearch.url(password="s3cret")))
    with pytest.raises(TransientError, match=said) as refusal:
        await index.ensure("any")
    assert refusal.value.missing == "elasticsearch"
    assert "s3cret" not in str(refusal.value)
    await index.close()


async def test_a_server_of_another_version_is_named_with_what_to_do(
    elasticsearch: Elasticsearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "COMPATIBLE_WITH", 7)  # what 9 refuses, as 7 refuses 8
    index = ElasticsearchKeywords(elasticsearch.url())
    with pytest.raises(TransientError, match="not Elasticsearch 8 or 9") as refusal:
        await index.ensure("any")
    assert refusal.value.missing == "elasticsearch"
    await index.close()


async def test_a_red_index_is_told_by_name(
    index: ElasticsearchKeywords, client: AsyncElasticsearch, name: str
) -> None:
    await client.indices.create(
        index=f"{name}_red-1",
        aliases={f"{name}_red": {}},
        settings={"index.routing.allocation.require._name": "nobody"},
        wait_for_active_shards="0",
    )
    try:
        with pytest.raises(TransientError, match=r"is red.*_cluster/allocation/explain"):
            await index.ensure(f"{name}_red")
    finally:
        await index.drop(f"{name}_red")


async def _block(client: AsyncElasticsearch, name: str, value: Any) -> None:
    settings = {"index.blocks.read_only_allow_delete": value}
    await client.indices.put_settings(index=name, settings=settings)
