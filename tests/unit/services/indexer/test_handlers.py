"""A chunk set becomes searchable in one step; what no longer matters leaves no trace."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from libs.contracts import DocumentChunked, DocumentDeleted, DocumentFailed, DocumentIndexed
from libs.eventbus import Policies, RetryPolicy
from libs.eventbus.testing import InMemoryBus
from libs.service.document_watch import DocumentWatch
from libs.storage.sql import chunks, documents
from services.indexer.deps import Deps
from services.indexer.domain import Precedence, Rank
from services.indexer.handlers import subscriptions
from tests.fakes import FakeObjectStore
from tests.fakes_search import FakeKeywords, FakeVectors, HeldEmbedder
from tests.library import ACTIVE, Library
from tests.servers.databases import sqlite

TEXT = "\n".join(f"line {i} about travel" for i in range(70))


@dataclass
class World:
    library: Library
    vectors: FakeVectors
    keywords: FakeKeywords
    embedder: HeldEmbedder
    objects: FakeObjectStore
    bus: InMemoryBus

    async def chunked(self, document_id: str = "d", generation: int = 1) -> DocumentChunked:
        """The document is cut, and the event says so."""
        return await self.library.chunked(document_id, TEXT, generation=generation)

    async def rows(self, document_id: str = "d") -> tuple[int, int]:
        return (
            await self.vectors.count(ACTIVE.vector_collection, "t", document_id),
            await self.keywords.count(ACTIVE.keyword_index, "t", document_id),
        )

    async def state(self, document_id: str = "d") -> tuple[str, int | None] | None:
        async with self.library.db.reading() as sql:
            row = await documents.find(sql, "t", document_id)
        return None if row is None else (row["state"], row["active_generation"])

    async def chunk_count(self, generation: int, document_id: str = "d") -> int:
        async with self.library.db.reading() as sql:
            return await chunks.count(sql, "t", document_id, generation)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with sqlite(tmp_path) as db:
        vectors, keywords, embedder = FakeVectors(), FakeKeywords(), HeldEmbedder()
        library = await Library(db, embedder, vectors, keywords).open()
        objects = FakeObjectStore()
        deps = Deps(
            db,
            objects,
            embedder,
            vectors,
            keywords,
            Precedence(),
            DocumentWatch(check_s=0.01),
        )
        policies = Policies(retry=RetryPolicy(max_attempts=3, base_delay_s=1.0))
        bus = InMemoryBus(db, subscriptions(deps), policies=policies)
        yield World(library, vectors, keywords, embedder, objects, bus)


async def test_a_chunk_set_is_indexed_and_announced_once(world: World) -> None:
    event = await world.chunked()
    await world.bus.deliver(event)
    await world.bus.redeliver()
    assert await world.rows() == (70, 70)
    assert await world.state() == ("indexed", 1)
    assert world.bus.published == [DocumentIndexed("t", "d", 1, 70)]


async def test_a_new_generation_replaces_the_old_one_everywhere(world: World) -> None:
    await world.bus.deliver(await world.chunked())
    world.objects.objects = {
        "t/d/1/text.txt": b"old",
        "t/d/2/text.txt": b"new",
        "t/d/original": b"",
    }
    await world.bus.deliver(await world.chunked(generation=2))
    assert await world.state() == ("indexed", 2)
    generations = {row.generation for row in world.vectors.rows["vectors"].values()}
    generations |= {row.generation for row in world.keywords.rows["keywords"].values()}
    assert generations == {2}
    assert (await world.chunk_count(1), await world.chunk_count(2)) == (0, 71)
    assert set(world.objects.objects) == {"t/d/2/text.txt", "t/d/original"}


async def test_a_removal_cut_short_is_finished_by_the_repeat(world: World) -> None:
    await world.bus.deliver(await world.chunked())
    event = await world.chunked(generation=2)
    world.objects.away = True  # the last step fails after the new generation became visible
    await world.bus.deliver(event)
    assert await world.state() == ("indexed", 2)
    world.objects.away = False
    await world.bus.run_due()
    assert await world.rows() == (70, 70)
    assert world.bus.dead_letters == []


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "cancelled"},
        {"state": "deleted"},
        {"state": "uploaded", "generation": 2},
    ],
)
async def test_work_that_no_longer_matters_stops_at_once_and_takes_back_its_rows(
    world: World, changes: dict[str, object]
) -> None:
    event = await world.chunked()
    world.embedder.go.clear()
    work = asyncio.create_task(world.bus.deliver(event))
    await world.embedder.asked.wait()
    await world.library.change("d", **changes)
    await asyncio.wait_for(work, 60)
    assert await world.rows() == (0, 0)
    assert await world.chunk_count(1) == 0
    assert world.bus.published == []


@pytest.mark.parametrize(
    "changes",
    [{"state": "cancelled"}, {"state": "deleted"}, {"state": "uploaded", "generation": 2}],
)
async def test_what_nobody_waits_for_takes_no_embedding_time(
    world: World, changes: dict[str, object]
) -> None:
    event = await world.chunked()
    await world.library.change("d", **changes)
    await world.bus.deliver(event)
    assert world.embedder.calls == 0
    assert await world.chunk_count(1) == 0


async def test_a_cancel_between_batches_takes_no_more_embedding_time(world: World) -> None:
    event = await world.chunked()
    world.embedder.go.clear()
    work = asyncio.create_task(world.bus.deliver(event))
    await world.embedder.asked.wait()
    async with world.library.db.work() as sql:
        await documents.cancel(sql, "t", "d")
    world.embedder.go.set()
    await work
    assert world.embedder.calls == 1
    assert await world.rows() == (0, 0)


async def test_a_cancel_while_a_retry_waits_ends_it(world: World) -> None:
    event = await world.chunked()
    world.vectors.away = True
    await world.bus.deliver(event)
    world.vectors.away = False
    async with world.library.db.work() as sql:
        await documents.cancel(sql, "t", "d")
    assert await world.bus.run_due() == 1
    assert (world.embedder.calls, world.bus.retries, world.bus.dead_letters) == (1, [], [])
    assert await world.state() == ("cancelled", None)
    assert await world.rows() == (0, 0)


async def test_a_late_event_of_an_older_generation_leaves_the_newer_one_alone(
    world: World,
) -> None:
    first = await world.chunked()
    await world.bus.deliver(first)
    await world.bus.deliver(await world.chunked(generation=2))
    await world.bus.deliver(first)
    assert await world.state() == ("indexed", 2)
    assert await world.rows() == (70, 70)


async def test_deletion_empties_every_store_and_ends_with_the_record(world: World) -> None:
    await world.bus.deliver(await world.chunked())
    await world.bus.deliver(await world.chunked("other"))
    world.objects.objects = {"t/d/original": b"x", "t/d/1/text.txt": b"x", "t/other/original": b"x"}
    await world.library.change("d", state="deleted", active_generation=None)
    await world.bus.deliver(DocumentDeleted("t", "d"))
    await world.bus.redeliver()
    assert await world.rows() == (0, 0)
    assert await world.chunk_count(1) == 0
    assert set(world.objects.objects) == {"t/other/original"}
    assert await world.state() is None
    assert await world.rows("other") == (70, 70)


async def test_a_deletion_waits_for_a_store_that_is_away(world: World) -> None:
    await world.bus.deliver(await world.chunked())
    await world.library.change("d", state="deleted", active_generation=None)
    world.keywords.away = True
    await world.bus.deliver(DocumentDeleted("t", "d"))
    assert await world.state() == ("deleted", None)
    world.keywords.away = False
    await world.bus.run_due()
    assert await world.state() is None


async def test_a_living_document_is_not_deleted_by_a_stray_event(world: World) -> None:
    await world.bus.deliver(await world.chunked())
    await world.bus.deliver(DocumentDeleted("t", "d"))
    assert await world.rows() == (70, 70)


async def test_a_store_that_stays_away_fails_the_document_with_a_reason(world: World) -> None:
    event = await world.chunked()
    world.vectors.away = True
    await world.bus.deliver(event)
    while await world.bus.run_due():
        pass
    assert (await world.state() or ("",))[0] == "failed"
    failed = [each for each in world.bus.published if isinstance(each, DocumentFailed)]
    assert [each.stage for each in failed] == ["index"]


async def fail(world: World) -> None:
    async with world.library.db.work() as sql:
        failed = await documents.fail(
            sql, "t", "d", 1, stage="index", reason="retries-exhausted", detail=""
        )
    assert failed


async def resume(world: World) -> DocumentChunked:
    async with world.library.db.work() as sql:
        assert (await documents.resume(sql, "t", "d"))["state"] == "chunked"
    return DocumentChunked("t", "d", 1, 1, 70)


async def counted(world: World) -> DocumentChunked:
    event = await world.chunked()
    await world.library.change("d", counts={"parents": 1, "chunks": 70})
    return event


async def test_a_late_copy_of_an_event_leaves_a_failed_document_what_it_resumes_from(
    world: World,
) -> None:
    event = await counted(world)
    await fail(world)
    await world.bus.deliver(event)
    assert await world.chunk_count(1) == 71
    await world.bus.deliver(await resume(world))
    assert await world.state() == ("indexed", 1)
    assert await world.rows() == (70, 70)


async def test_a_chunk_set_with_a_hole_never_becomes_searchable(world: World) -> None:
    event = await counted(world)
    async with world.library.db.work() as sql:
        parents = await chunks.parents(sql, "t", "d", 1)
        children = await chunks.children(sql, "t", "d", 1)
        await chunks.clear(sql, "t", "d", 1)
        await chunks.add(sql, "t", "d", 1, [*parents, *children[1:]])
    await world.bus.deliver(event)
    assert await world.state() == ("failed", None)
    assert [f.reason for f in world.bus.published if isinstance(f, DocumentFailed)] == [
        "missing-chunks"
    ]
    async with world.library.db.work() as sql:
        assert (await documents.resume(sql, "t", "d"))["state"] == "parsed"


async def test_a_stale_event_with_another_count_fails_nothing(world: World) -> None:
    await counted(world)
    await world.bus.deliver(DocumentChunked("t", "d", 1, 1, 99))
    assert await world.state() == ("indexed", 1)


async def test_work_that_outlived_a_failure_and_a_resume_does_not_end_the_resumed_one(
    world: World,
) -> None:
    event = await counted(world)
    world.embedder.go.clear()
    work = asyncio.create_task(world.bus.deliver(event))
    await world.embedder.asked.wait()
    await fail(world)
    resumed = await resume(world)
    world.embedder.go.set()
    await work
    assert await world.state() == ("chunked", None)
    await world.bus.deliver(resumed)
    assert await world.state() == ("indexed", 1)


async def test_bulk_work_waits_while_urgent_work_is_under_way() -> None:
    precedence = Precedence()
    with precedence.lane(Rank.URGENT):
        bulk = asyncio.create_task(precedence.turn(Rank.NORMAL))
        await precedence.turn(Rank.URGENT)
        await asyncio.sleep(0)
        assert not bulk.done()
    await asyncio.wait_for(bulk, 60)
