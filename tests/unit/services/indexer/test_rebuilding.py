"""A new set of indexes is built beside the live one, and replaces it when it is whole."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from libs.contracts import DocumentChunked, DocumentDeleted
from libs.eventbus.testing import InMemoryBus
from libs.kernel import ConflictError, NotFoundError, TransientError
from libs.retrieval import Retriever
from libs.storage.sql import active_index, documents, index_builds
from libs.storage.sql.active_index import ActiveIndex, read_sets
from services.indexer.deps import Deps
from services.indexer.domain import Rank
from services.indexer.handlers import subscriptions
from services.indexer.rebuilding import Rebuilder, RebuildPolicy
from tests.fakes import FakeObjectStore
from tests.fakes_search import FakeEmbedder, FakeKeywords, FakeVectors, HeldEmbedder
from tests.library import ACTIVE, Library
from tests.servers.databases import sqlite
from tests.waiting import until

TEXT = "one line about travel\nanother line about hotels"


class OtherModel(HeldEmbedder):
    name = "other-words"


@dataclass
class World:
    library: Library
    vectors: FakeVectors
    keywords: FakeKeywords
    embedder: HeldEmbedder
    said: list[str | None] = field(default_factory=list)
    flushed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.use(self.embedder)

    def use(self, embedder: HeldEmbedder) -> None:
        """As after a start of the process: nothing is remembered."""
        self.embedder = embedder
        library = self.library
        self.deps = Deps(library.db, FakeObjectStore(), embedder, self.vectors, self.keywords)
        self.bus = InMemoryBus(library.db, subscriptions(self.deps))

        async def flush(name: str) -> None:
            self.flushed.append(name)

        policy = RebuildPolicy(look_every_s=0.001, keep_old_s=0.0)
        self.rebuilder = Rebuilder(self.deps, flush=flush, report=self.said.append, policy=policy)

    async def start(self, *, rechunk: bool = False) -> str:
        async with self.library.db.work() as sql:
            return str((await index_builds.start(sql, rechunk=rechunk))["id"])

    async def state(self) -> str:
        async with self.library.db.reading() as sql:
            row = await index_builds.latest(sql)
        assert row is not None
        return str(row["state"])

    async def until(self, state: str) -> None:
        for _ in range(50):
            if await self.state() == state:
                return
            await self.rebuilder.step()
        raise AssertionError(f"{await self.state()} instead of {state}")

    async def active(self) -> ActiveIndex:
        async with self.library.db.reading() as sql:
            return await active_index.read(sql)

    async def upload(self, document_id: str, generation: int = 1) -> DocumentChunked:
        return await self.library.chunked(document_id, TEXT, generation=generation)

    async def delete(self, document_id: str) -> None:
        async with self.library.db.work() as sql:
            await documents.tombstone(sql, "t", document_id)
        await self.bus.deliver(DocumentDeleted("t", document_id))

    async def held(self) -> set[tuple[str, int, int]]:
        """(document, generation, rows) in the active set; vectors and keywords must agree, and
        there must be no other set.
        """
        active = await self.active()
        assert set(self.vectors.rows) == {active.vector_collection}
        assert set(self.keywords.rows) == {active.keyword_index}
        kinds = []
        for rows in (
            self.vectors.rows[active.vector_collection],
            self.keywords.rows[active.keyword_index],
        ):
            of = [(row.document_id, row.generation) for row in rows.values()]
            kinds.append({(*each, of.count(each)) for each in of})
        assert kinds[0] == kinds[1]
        return kinds[0]

    async def found(self) -> set[str]:
        retriever = Retriever(self.library.db, self.embedder, self.vectors, self.keywords)
        return {hit.document_id for hit in await retriever.search("t", "travel")}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with sqlite(tmp_path) as db:
        vectors, keywords, embedder = FakeVectors(), FakeKeywords(), HeldEmbedder()
        library = await Library(db, embedder, vectors, keywords).open()
        yield World(library, vectors, keywords, embedder)


async def test_the_new_set_replaces_the_old_one_when_it_holds_all_that_search_shows(
    world: World,
) -> None:
    for document_id in ("a", "b"):
        await world.library.add(document_id, TEXT)
    await world.library.record("waiting", state="chunked", active=None)
    await world.start()
    await world.until("switched")
    assert await world.active() != ACTIVE
    assert ACTIVE.vector_collection in world.vectors.rows  # a search may still be reading it
    assert world.flushed == [(await world.active()).vector_collection]
    assert await world.found() == {"a", "b"}
    await world.until("done")
    assert await world.held() == {("a", 1, 2), ("b", 1, 2)}
    assert await world.found() == {"a", "b"}


async def test_a_second_start_is_refused_until_the_first_is_over(world: World) -> None:
    await world.library.add("a", TEXT)
    await world.start()
    with pytest.raises(ConflictError, match="--status"):
        await world.start()
    await world.until("switched")
    with pytest.raises(ConflictError, match="try again"):
        await world.start()
    await world.until("done")
    await world.start()
    await world.until("done")
    assert await world.held() == {("a", 1, 2)}


@pytest.mark.parametrize("steps", range(4))
async def test_a_cancelled_build_leaves_nothing_whenever_it_is_cancelled(
    world: World, steps: int
) -> None:
    await world.library.add("a", TEXT)
    await world.start()
    for _ in range(steps):
        await world.rebuilder.step()
    async with world.library.db.work() as sql:
        if await world.state() == "switched":
            with pytest.raises(ConflictError, match="in use already"):
                await index_builds.cancel(sql)
            return
        await index_builds.cancel(sql)
    await world.until("cancelled")
    assert await world.active() == ACTIVE
    assert await world.held() == {("a", 1, 2)}
    async with world.library.db.work() as sql:
        with pytest.raises(NotFoundError):
            await index_builds.cancel(sql)


async def test_a_cancel_stops_the_work_on_a_document_too(world: World) -> None:
    await world.library.add("a", TEXT.replace("\n", " ") + "\nline" * 40)
    await world.start()
    await world.rebuilder.step()
    world.embedder.go.clear()
    world.embedder.asked.clear()
    world.embedder.texts.clear()
    working = asyncio.create_task(world.rebuilder.step())
    await asyncio.wait_for(world.embedder.asked.wait(), 60)  # the probe
    async with world.library.db.work() as sql:
        await index_builds.cancel(sql)
    world.embedder.go.set()
    await working
    assert len(world.embedder.texts) < 20
    await world.until("cancelled")
    assert set(world.vectors.rows) == {ACTIVE.vector_collection}


async def test_what_is_uploaded_and_deleted_meanwhile_is_so_in_both_sets(world: World) -> None:
    for document_id in ("kept", "deleted", "anew"):
        await world.library.add(document_id, TEXT)
    await world.start()
    await world.rebuilder.step()  # named, and empty
    sets = await world.deps.sets()
    assert sets.building is not None
    await world.vectors.ensure(sets.building.index.vector_collection)
    await world.keywords.ensure(sets.building.index.keyword_index)
    await world.bus.deliver(await world.upload("new"))
    await world.delete("deleted")
    await world.bus.deliver(await world.upload("anew", 2))
    for index in sets.every:
        assert await world.vectors.count(index.vector_collection, "t", "new") == 2
        assert await world.keywords.count(index.keyword_index, "t", "anew") == 2
        assert await world.vectors.count(index.vector_collection, "t", "deleted") == 0
    embedded = len(world.embedder.texts)
    await world.until("done")
    assert await world.held() == {("kept", 1, 2), ("new", 1, 2), ("anew", 2, 2)}
    probes = 2 * 2  # made twice, in two languages
    assert len(world.embedder.texts) - embedded == 2 + probes  # `kept` alone was left to copy


@pytest.mark.parametrize("change", ["delete", "anew"])
async def test_a_document_that_changes_while_it_is_copied_leaves_nothing_behind(
    world: World, change: str
) -> None:
    await world.library.add("a", TEXT)
    await world.start()
    await world.rebuilder.step()
    started = asyncio.Event()

    class Racing(HeldEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if texts[0] in TEXT and not started.is_set():
                started.set()
                if change == "delete":
                    await world.delete("a")
                else:
                    await world.bus.deliver(await world.upload("a", 2))
            return await super().embed_passages(texts)

    world.use(Racing())
    await world.until("done")
    assert started.is_set()
    assert await world.held() == (set() if change == "delete" else {("a", 2, 2)})


async def test_a_writer_that_knew_only_the_old_set_shows_nothing_that_is_not_in_the_new_one(
    world: World,
) -> None:
    held = HeldEmbedder()
    held.go.clear()
    deps = Deps(world.library.db, FakeObjectStore(), held, world.vectors, world.keywords)
    world.bus = InMemoryBus(world.library.db, subscriptions(deps))
    writing = asyncio.create_task(world.bus.deliver(await world.upload("late")))
    await asyncio.wait_for(held.asked.wait(), 60)
    await world.start()
    # The switch comes while the writer is still at work with what it knew.
    await world.until("switched")
    held.go.set()
    await writing
    await world.bus.run_due()
    await world.until("done")
    assert await world.found() == {"late"}
    assert await world.held() == {("late", 1, 2)}


async def test_a_writer_that_knew_no_new_set_is_followed_by_the_builder(world: World) -> None:
    event = await world.upload("late")
    world.embedder.go.clear()
    writing = asyncio.create_task(world.bus.deliver(event))
    await asyncio.wait_for(world.embedder.asked.wait(), 60)
    await world.start()
    await world.rebuilder.step()
    world.embedder.go.set()
    await writing
    await world.until("done")
    assert await world.held() == {("late", 1, 2)}


async def test_work_that_somebody_waits_for_goes_first(world: World) -> None:
    await world.library.add("a", TEXT)
    await world.start()
    await world.rebuilder.step()
    world.embedder.texts.clear()
    with world.deps.precedence.lane(Rank.NORMAL):
        copying = asyncio.create_task(world.rebuilder.step())
        for _ in range(200):
            await asyncio.sleep(0.001)
        assert not [text for text in world.embedder.texts if text in TEXT]
    await asyncio.wait_for(copying, 60)
    assert [text for text in world.embedder.texts if text in TEXT]


async def test_a_new_start_goes_on_where_the_last_one_was(world: World) -> None:
    for number in range(6):
        await world.library.add(f"d{number}", TEXT)
    await world.start()
    await world.rebuilder.step()
    world.embedder.go.clear()
    working = asyncio.create_task(world.rebuilder.step())
    await asyncio.wait_for(world.embedder.asked.wait(), 60)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    world.use(HeldEmbedder())
    await world.until("done")
    assert await world.held() == {(f"d{number}", 1, 2) for number in range(6)}


async def test_a_document_that_cannot_be_copied_is_named_and_holds_up_the_switch_alone(
    world: World,
) -> None:
    class Failing(HeldEmbedder):
        broken = True

        async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if self.broken and any("poison" in text for text in texts):
                raise TransientError("the engine does not like it")
            return await super().embed_passages(texts)

    await world.library.add("bad", "poison")
    await world.library.add("good", TEXT)
    world.use(failing := Failing())
    build_id = await world.start()
    for _ in range(5):
        await world.rebuilder.step()
    async with world.library.db.reading() as sql:
        row = await index_builds.current(sql)
        progress = await index_builds.progress(sql, build_id)
    assert row is not None
    assert row["problem"] == "document bad: the engine does not like it"
    assert (progress.done, progress.total) == (1, 2)
    assert await world.active() == ACTIVE
    failing.broken = False
    await world.until("done")
    assert await world.held() == {("bad", 1, 1), ("good", 1, 2)}


async def test_a_fault_of_the_builder_ends_nothing_else_and_is_told(world: World) -> None:
    await world.library.add("a", TEXT)
    await world.start()
    broken = world.vectors.ensure

    async def fails(name: str) -> None:
        raise RuntimeError("no such method")

    world.vectors.ensure = fails  # type: ignore[method-assign]
    stop = asyncio.Event()
    running = asyncio.create_task(world.rebuilder.run(stop))

    async def is_told() -> bool:
        async with world.library.db.reading() as sql:
            row = await index_builds.latest(sql)
        return row is not None and row["problem"] == "no such method"

    async def is_done() -> bool:
        return await world.state() == "done"

    await until(is_told, within_s=60)
    world.vectors.ensure = broken  # type: ignore[method-assign]
    await until(is_done, within_s=60)
    stop.set()
    await running
    assert await world.held() == {("a", 1, 2)}


async def test_another_embedding_model_is_said_and_served_after_the_switch(world: World) -> None:
    await world.library.add("a", TEXT)
    world.use(OtherModel())
    await world.rebuilder.step()
    assert world.said[-1] == "index of fake-words: run `sluice reindex`"
    with pytest.raises(TransientError, match="run `sluice reindex`"):
        await world.found()
    await world.start()
    await world.until("done")
    await world.rebuilder.step()
    assert world.said[-1] is None
    assert (await world.active()).embedding_model == "other-words"
    assert await world.found() == {"a"}


async def test_a_build_that_another_model_began_is_to_be_cancelled(world: World) -> None:
    await world.library.add("a", TEXT)
    await world.start()
    await world.rebuilder.step()
    world.use(OtherModel())
    with pytest.raises(TransientError, match="sluice reindex --cancel"):
        await world.rebuilder.step()
    async with world.library.db.work() as sql:
        await index_builds.cancel(sql)
    await world.until("cancelled")
    await world.start()
    await world.until("done")
    assert await world.found() == {"a"}


async def test_a_search_that_comes_too_late_for_the_old_set_finds_in_the_new_one(
    world: World,
) -> None:
    await world.library.add("a", TEXT)
    await world.start()
    held = HeldEmbedder()

    class SlowQuery(FakeEmbedder):
        async def embed_query(self, text: str) -> NDArray[np.float32]:
            await asyncio.sleep(0)  # the active set was read by now
            held.asked.set()
            await held.go.wait()
            return await super().embed_query(text)

    held.go.clear()
    retriever = Retriever(world.library.db, SlowQuery(), world.vectors, world.keywords)
    searching = asyncio.create_task(retriever.search("t", "travel"))
    await asyncio.wait_for(held.asked.wait(), 60)
    await world.until("done")
    held.go.set()
    assert {hit.document_id for hit in await searching} == {"a"}


async def test_what_is_left_of_a_set_that_is_over_is_swept(world: World) -> None:
    await world.library.add("a", TEXT)
    await world.start()
    await world.until("done")
    await world.vectors.ensure(ACTIVE.vector_collection)  # a late process made it again
    await world.keywords.ensure("somebody-elses")
    assert await world.rebuilder.sweep() == 1
    assert set(world.vectors.rows) == {(await world.active()).vector_collection}
    assert "somebody-elses" in world.keywords.rows
    assert await world.rebuilder.sweep() == 0


async def test_nothing_of_an_open_build_is_swept(world: World) -> None:
    await world.library.add("a", TEXT)
    for _ in range(2):
        await world.start()
        await world.until("switched")
        assert await world.rebuilder.sweep() == 0
        assert len(world.vectors.rows) == 2
        await world.until("done")
    async with world.library.db.reading() as sql:
        assert (await read_sets(sql)).building is None
