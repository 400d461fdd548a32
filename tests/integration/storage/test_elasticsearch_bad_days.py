"""What the keyword index does while Elasticsearch is away, slow, or has done only a part.

Tests use one server, also those that kill it: it takes half a minute to start, keeps what it
acknowledged, and is there again when each of them ends.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest
from elasticsearch import AsyncElasticsearch

from libs.kernel import TransientError, new_id
from libs.storage.keywords.elasticsearch import ElasticsearchKeywords
from tests.servers.elasticsearch import Elasticsearch
from tests.servers.proxy import Proxy, proxy_to
from tests.suites.search_index import listed, row
from tests.waiting import eventually, until

pytestmark = pytest.mark.on_server
TIMEOUT_S = 3.0
T = TypeVar("T")


async def answered(call: Callable[[], Awaitable[T]]) -> T:
    """What the server says, be it a refusal: one that was too slow to say anything is asked again.

    Raises: as the call.
    """
    async with asyncio.timeout(120):
        while True:
            try:
                return await call()
            except TransientError as exc:
                if "did not answer in time" not in str(exc):
                    raise


@pytest.fixture
def name() -> str:
    return f"keywords_{new_id()}"


@pytest.fixture
async def proxy(elasticsearch: Elasticsearch) -> AsyncIterator[Proxy]:
    async with proxy_to(elasticsearch.port) as proxy:
        yield proxy


@pytest.fixture
async def index(
    elasticsearch: Elasticsearch, proxy: Proxy, name: str
) -> AsyncIterator[ElasticsearchKeywords]:
    """Behind the proxy, and impatient."""
    index = ElasticsearchKeywords(elasticsearch.url(port=proxy.port), timeout_s=TIMEOUT_S)
    await eventually(lambda: index.ensure(name), on=TransientError)
    yield index
    await eventually(lambda: index.drop(name), on=TransientError)
    await index.close()


async def test_a_bulk_whose_answer_is_cut_off_is_written_once(
    index: ElasticsearchKeywords, proxy: Proxy, name: str
) -> None:
    proxy.cut_answer_to(lambda piece: b"_bulk" in piece)
    rows = [row(f"c{i}", "text") for i in range(10)]
    await answered(lambda: index.upsert(name, rows))
    assert proxy.cuts == 1
    assert await answered(lambda: index.count(name, "t")) == 10


async def test_a_server_that_refuses_connections_is_named_and_found_again(
    index: ElasticsearchKeywords, proxy: Proxy, name: str
) -> None:
    proxy.refuses = True
    proxy.cut()
    for call in (
        index.ensure(name),
        index.upsert(name, [row("c", "text")]),
        index.delete(name, "t", "d1"),
        index.search(name, "t", ["text"], 5),
        listed(index, name, "t"),
    ):
        with pytest.raises(TransientError, match="cannot be reached") as refusal:
            await call
        assert refusal.value.missing == "elasticsearch"
    proxy.refuses = False
    await answered(lambda: index.upsert(name, [row("c", "text")]))
    assert len(await answered(lambda: index.search(name, "t", ["text"], 5))) == 1


async def test_of_a_bulk_that_half_succeeds_the_rest_is_sent_again(
    index: ElasticsearchKeywords, elasticsearch: Elasticsearch
) -> None:
    """One of two shards is away: its rows are refused with 503, the others are written."""
    name = f"halves_{new_id()}"
    rows = [row(f"c{i}", "text") for i in range(20)]
    only_one: dict[str, object] = {"index.routing.allocation.total_shards_per_node": 1}
    async with AsyncElasticsearch(elasticsearch.url()) as admin:
        await admin.indices.put_index_template(
            name="halves",
            index_patterns=["halves_*"],
            template={"settings": {"number_of_shards": 2, **only_one}},
        )
        try:
            with pytest.raises(TransientError, match="is red"):
                await answered(lambda: index.ensure(name))
            with pytest.raises(TransientError, match="503") as refusal:
                await answered(lambda: index.upsert(name, rows))
            assert refusal.value.missing == "elasticsearch"
            with pytest.raises(TransientError):  # what is there is not passed off as the whole
                await answered(lambda: index.count(name, "t"))
            written = await admin.search(index=name, size=0, allow_partial_search_results=True)
            assert 0 < written["hits"]["total"]["value"] < len(rows)

            writing = asyncio.create_task(answered(lambda: index.upsert(name, rows)))
            await asyncio.sleep(TIMEOUT_S / 2 + 0.5)  # the first try has ended
            await admin.indices.put_settings(index=name, settings=dict.fromkeys(only_one))
            await writing
            assert await answered(lambda: index.count(name, "t")) == len(rows)
        finally:
            await admin.indices.delete_index_template(name="halves")
            await answered(lambda: index.drop(name))


async def test_a_frozen_server_is_given_up_in_time_and_goes_on_when_it_wakes(
    index: ElasticsearchKeywords, elasticsearch: Elasticsearch, name: str
) -> None:
    await answered(lambda: index.upsert(name, [row("before", "text")]))
    elasticsearch.freeze()
    try:
        with pytest.raises(TransientError, match="did not answer in time"):
            await index.upsert(name, [row("c", "text")])
        with pytest.raises(TransientError):
            await index.search(name, "t", ["text"], 5)
    finally:
        elasticsearch.thaw()
    write = index.upsert
    await eventually(lambda: write(name, [row("c", "text")]), on=TransientError)
    assert await answered(lambda: index.count(name, "t")) == 2


async def test_what_was_acknowledged_survives_a_kill_in_the_middle_of_writing(
    index: ElasticsearchKeywords, elasticsearch: Elasticsearch, name: str
) -> None:
    acknowledged: list[str] = []

    async def write() -> None:
        while True:
            rows = [row(f"c{len(acknowledged)}", "text")]
            await answered(lambda rows=rows: index.upsert(name, rows))  # type: ignore[misc]
            acknowledged.append(rows[0].chunk_id)

    writers = asyncio.create_task(write())
    await until(lambda: len(acknowledged) >= 3)
    elasticsearch.kill()
    with pytest.raises(TransientError):
        await writers
    with pytest.raises(TransientError) as refusal:
        await answered(lambda: index.search(name, "t", ["text"], 5))
    assert refusal.value.missing == "elasticsearch"
    elasticsearch.start()
    found = await eventually(lambda: listed(index, name, "t"), on=TransientError)
    assert set(acknowledged) <= {entry[0] for entry in found}
