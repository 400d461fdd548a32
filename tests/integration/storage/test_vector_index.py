"""The vector index, on Milvus Lite and on a full Milvus."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pymilvus import MilvusClient, MilvusException

from libs.kernel import TransientError, new_id
from libs.storage.ports import IndexRow
from libs.storage.vectors import FlushPolicy, MilvusVectors
from tests.milvus_lite import MilvusLite, milvus_lite
from tests.servers.milvus import Milvus
from tests.suites.search_index import DIMENSION, VectorIndexSuite, unit_vector
from tests.waiting import eventually

WHEN_TOLD = FlushPolicy(rows=10**9, idle_s=3600.0)


@pytest.fixture(scope="module")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusLite]:
    with milvus_lite(tmp_path_factory.mktemp("milvus")) as server:
        yield server


@pytest.fixture(params=["lite", pytest.param("milvus", marks=pytest.mark.on_server)])
def server(request: pytest.FixtureRequest) -> MilvusLite | Milvus:
    found: MilvusLite | Milvus = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def name() -> str:
    return f"vectors_{new_id()}"


@pytest.fixture
async def index(server: MilvusLite | Milvus, name: str) -> AsyncIterator[MilvusVectors]:
    index = await opened(server, name)
    yield index
    await index.drop(name)
    await index.close()


async def opened(server: MilvusLite | Milvus, name: str, **options: Any) -> MilvusVectors:
    """With its collection; a server that is only just up may need a moment."""
    index = MilvusVectors(server.uri, DIMENSION, **options)
    await eventually(lambda: index.ensure(name), on=TransientError)
    return index


class TestVectorIndex(VectorIndexSuite):
    @pytest.fixture
    def name(self) -> str:
        return f"vectors_{new_id()}"


async def test_what_one_process_wrote_another_finds_at_once(
    index: MilvusVectors, server: MilvusLite | Milvus, name: str
) -> None:
    other = MilvusVectors(server.uri, DIMENSION)
    for i in range(20):
        await index.upsert(name, [_row(f"c{i}", 1, document_id=f"d{i}")])
        hits = await other.search(name, "t", unit_vector(1), 9)
        assert [hit.chunk_id for hit in hits] == [f"c{i}"]
        await index.delete(name, "t", f"d{i}")
        assert await other.search(name, "t", unit_vector(1), 9) == []
    await other.close()


async def test_a_collection_of_another_dimension_is_refused_with_what_to_do(
    index: MilvusVectors, server: MilvusLite | Milvus, name: str
) -> None:
    other = MilvusVectors(server.uri, DIMENSION + 8)
    with pytest.raises(TransientError, match=r"holds vectors of 8 .* 16: .* `sluice reindex`"):
        await other.ensure(name)
    await other.close()


async def test_more_rows_than_a_page_are_all_listed_once(index: MilvusVectors, name: str) -> None:
    rows = [_row(f"c{i}", i / 6_000) for i in range(5_001)]
    for at in range(0, len(rows), 1_000):
        await index.upsert(name, rows[at : at + 1_000])
    listed = [entry.chunk_id async for page in index.entries(name, "t") for entry in page]
    assert sorted(listed) == sorted(each.chunk_id for each in rows)


async def test_rows_are_found_across_flushes(lite: MilvusLite, name: str) -> None:
    index = await opened(lite, name, flush=FlushPolicy(rows=8, idle_s=0.01))
    for i in range(5):
        await index.upsert(name, [_row(f"c{i}.{j}", i + 1) for j in range(4)])
    await index.flush(name)
    await index.upsert(name, [_row("c0.0", 9)])
    assert await index.count(name, "t") == 20
    hits = await index.search(name, "t", unit_vector(1), 30)
    assert len({hit.chunk_id for hit in hits}) == len(hits) == 20
    await index.close()


async def test_writes_searches_and_flushes_side_by_side_lose_and_miss_nothing(
    server: MilvusLite | Milvus, name: str
) -> None:
    index = await opened(server, name, flush=WHEN_TOLD)
    await index.upsert(name, [_row("first", 1)])
    done = asyncio.Event()

    async def write(writer: int) -> None:
        for batch in range(25):
            await index.upsert(
                name,
                [_row(f"w{writer}.{batch}.{n}", 2 + writer + batch / 50 + n / 999) for n in (0, 1)],
            )

    async def flush() -> None:
        while not done.is_set():
            await index.flush(name)

    async def search() -> int:
        missed = 0
        while not done.is_set():
            hits = await index.search(name, "t", unit_vector(1), 1)
            missed += [hit.chunk_id for hit in hits] != ["first"]
        return missed

    async with asyncio.TaskGroup() as group:
        group.create_task(flush())
        searching = group.create_task(search())
        await asyncio.gather(*map(write, range(8)))
        done.set()
    assert searching.result() == 0
    assert await index.count(name, "t") == 1 + 8 * 25 * 2
    await index.close()


async def test_few_rows_behind_many_nearer_ones_are_all_found(
    server: MilvusLite | Milvus, name: str
) -> None:
    index = await opened(server, name, flush=WHEN_TOLD)
    near = [IndexRow(f"c{i}", "t", "d1", 1, "", unit_vector(1, i / 9_999)) for i in range(3_000)]
    equal = [IndexRow(f"e{i}", "t", "d1", 1, "", unit_vector(0, 1)) for i in range(1_000)]
    few = [IndexRow(f"f{i}", "t", "d2", 1, "few", unit_vector(0, 1)) for i in range(20)]
    alone = [IndexRow("u", f"u{i}", "d3", 1, "", unit_vector(0, 1)) for i in range(50)]
    for at in range(0, 3_000, 1_000):
        await index.upsert(name, near[at : at + 1_000])
    await index.upsert(name, [*equal, *few])
    await index.upsert(name, alone)
    await index.flush(name)
    client = MilvusClient(server.uri)

    async def load() -> None:
        """Returns when every row is indexed; Milvus Lite may find an index half written."""
        client.release_collection(name)
        client.load_collection(name)

    await eventually(load, on=MilvusException)
    in_domain = await index.search(name, "t", unit_vector(1), 50, domains=["few"])
    assert {hit.chunk_id for hit in in_domain} == {row.chunk_id for row in few}
    for row in alone:
        of_tenant = await index.search(name, row.tenant, unit_vector(1), 50)
        assert [hit.chunk_id for hit in of_tenant] == ["u"], row.tenant
    client.close()
    await index.close()


@pytest.mark.parametrize("left_in_the_middle", [False, True])
async def test_a_collection_with_another_index_gets_the_one_of_today(
    lite: MilvusLite, name: str, left_in_the_middle: bool
) -> None:
    index = await opened(lite, name)
    rows = [_row(f"c{i}", i / 100) for i in range(50)]
    await index.upsert(name, rows)
    await index.flush(name)
    client = MilvusClient(lite.uri)
    client.release_collection(name)
    client.drop_index(name, "vector")
    if not left_in_the_middle:
        graph = client.prepare_index_params()
        graph.add_index("vector", index_type="HNSW", metric_type="COSINE")
        client.create_index(name, graph)
    later = MilvusVectors(lite.uri, DIMENSION)
    await later.ensure(name)
    assert client.describe_index(name, "vector")["index_type"] == "IVF_FLAT"
    hits = await later.search(name, "t", unit_vector(1), 100)
    assert [hit.chunk_id for hit in hits] == [row.chunk_id for row in rows]
    await later.close()
    await index.close()
    client.close()


async def test_acknowledged_rows_survive_a_kill_and_the_client_recovers(tmp_path: Path) -> None:
    with milvus_lite(tmp_path) as server:
        index = await opened(server, "c", timeout_s=10.0)
        await index.upsert("c", [_row("kept", 1), _row("dropped", 1, document_id="d2")])
        await index.delete("c", "t", "d2")
        server.kill()
        with pytest.raises(TransientError):
            await index.search("c", "t", unit_vector(1), 5)
        server.start()
        search = partial(index.search, "c", "t", unit_vector(1), 5)
        hits = await eventually(search, on=TransientError)
        assert [hit.chunk_id for hit in hits] == ["kept"]
        await index.close()


def _row(chunk_id: str, value: float, document_id: str = "d1") -> IndexRow:
    return IndexRow(chunk_id, "t", document_id, 1, "", vector=unit_vector(1, value))
