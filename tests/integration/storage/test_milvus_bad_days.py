"""What the vector index does while a full Milvus is away, slow, or has done what it did not say."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from libs.kernel import TransientError, new_id
from libs.storage.ports import IndexRow
from libs.storage.vectors import MilvusVectors
from tests.servers.frame import running
from tests.servers.milvus import TOKEN, Milvus
from tests.servers.proxy import Proxy
from tests.suites.search_index import DIMENSION, listed, unit_vector
from tests.waiting import eventually, until

pytestmark = pytest.mark.on_server
TIMEOUT_S = 3.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Milvus]:
    """One that these tests kill and freeze; whoever calls it needs a password."""
    with running(Milvus(tmp_path_factory.mktemp("milvus"), authorization=True)) as server:
        yield server


@pytest.fixture
def name() -> str:
    return f"vectors_{new_id()}"


@pytest.fixture
async def index(server: Milvus, proxy: Proxy, name: str) -> AsyncIterator[MilvusVectors]:
    """Behind the proxy, and impatient."""
    patient = MilvusVectors(server.uri, DIMENSION, token=TOKEN)
    await eventually(lambda: patient.ensure(name), on=TransientError)
    index = MilvusVectors(
        f"http://127.0.0.1:{proxy.port}", DIMENSION, token=TOKEN, timeout_s=TIMEOUT_S
    )
    yield index
    await eventually(lambda: patient.drop(name), on=TransientError)
    await index.close()
    await patient.close()


async def test_a_wrong_password_is_told_with_what_to_do(server: Milvus) -> None:
    index = MilvusVectors(server.uri, DIMENSION, token="root:s3cret")
    with pytest.raises(TransientError, match="correct MILVUS_TOKEN") as refusal:
        await index.ensure("any")
    assert refusal.value.missing == "milvus"
    assert "s3cret" not in str(refusal.value)
    await index.close()


async def test_a_server_that_refuses_connections_is_named_and_found_again(
    index: MilvusVectors, proxy: Proxy, name: str
) -> None:
    proxy.refuses = True
    for call in (
        index.ensure(name),
        index.upsert(name, [_row("c")]),
        index.search(name, "t", unit_vector(1), 5),
    ):
        with pytest.raises(TransientError, match="cannot be reached") as refusal:
            await call
        assert refusal.value.missing == "milvus"
    proxy.refuses = False
    await eventually(lambda: index.upsert(name, [_row("c")]), on=TransientError)
    search = index.search
    hits = await eventually(lambda: search(name, "t", unit_vector(1), 5), on=TransientError)
    assert len(hits) == 1


async def test_a_write_that_was_done_and_whose_answer_was_lost_is_there_once(
    index: MilvusVectors, proxy: Proxy, name: str
) -> None:
    unmarked = [_row("c", document_id="d0")]
    await eventually(lambda: index.upsert(name, unmarked), on=TransientError)
    proxy.cut_answer_to(lambda piece: b"the-marked-one" in piece)
    marked = [_row("c", document_id="the-marked-one"), _row("c2", document_id="d2")]
    await eventually(lambda: index.upsert(name, marked), on=TransientError)
    assert proxy.cuts == 1
    assert await eventually(lambda: index.count(name, "t"), on=TransientError) == 2
    found = await eventually(lambda: listed(index, name, "t"), on=TransientError)
    assert found == [("c", "the-marked-one", 1), ("c2", "d2", 1)]


async def test_a_frozen_server_is_given_up_in_time_and_goes_on_when_it_wakes(
    index: MilvusVectors, server: Milvus, name: str
) -> None:
    await eventually(lambda: index.upsert(name, [_row("before")]), on=TransientError)
    server.freeze()
    try:
        for call in (
            index.upsert(name, [_row("c")]),
            index.search(name, "t", unit_vector(1), 5),
        ):
            with pytest.raises(TransientError):
                await call
    finally:
        server.thaw()
    await eventually(lambda: index.upsert(name, [_row("c")]), on=TransientError)
    assert await eventually(lambda: index.count(name, "t"), on=TransientError) == 2


async def test_after_a_kill_a_search_finds_all_that_was_acknowledged_or_says_that_it_cannot(
    index: MilvusVectors, server: Milvus, name: str
) -> None:
    acknowledged: list[str] = []
    killed = False

    async def write() -> None:
        while True:
            chunk_id = f"c{len(acknowledged)}"
            try:
                await index.upsert(name, [_row(chunk_id)])
            except TransientError:
                if killed:
                    raise
                continue  # it was slow
            acknowledged.append(chunk_id)

    writing = asyncio.create_task(write())
    await until(lambda: len(acknowledged) >= 3)
    await eventually(lambda: index.delete(name, "t", "nobody"), on=TransientError)
    killed = True
    server.kill()
    with pytest.raises(TransientError):
        await writing
    with pytest.raises(TransientError):
        await index.search(name, "t", unit_vector(1), 5)
    server.start()
    new = MilvusVectors(server.uri, DIMENSION, token=TOKEN)
    for each in (new, index):
        hits = await eventually(
            lambda each=each: each.search(name, "t", unit_vector(1), 1_000),  # type: ignore[misc]
            on=TransientError,
        )
        assert set(acknowledged) <= {hit.chunk_id for hit in hits}
    await new.close()


def _row(chunk_id: str, document_id: str = "d1") -> IndexRow:
    return IndexRow(chunk_id, "t", document_id, 1, "", vector=unit_vector(1))
