"""Repairs leave the platform's own workers to do what they always do."""

from collections.abc import Sequence

from sqlalchemy import select

from libs.contracts import DocumentChunked, DocumentDeleted, DocumentUploaded, Event, decode
from libs.service.fsck.repairing import NO_ORIGINAL
from libs.storage.sql.tables import outbox
from services.indexer.deps import Deps
from services.indexer.handlers import delete, index
from tests.fakes_search import FakeVectors
from tests.library import ACTIVE
from tests.unit.libs.service.fsck.conftest import Platform


async def announced(platform: Platform) -> Sequence[Event]:
    async with platform.library.db.reading() as sql:
        rows = await sql.rows(select(outbox.c.value).order_by(outbox.c.id))
    return [decode(row["value"]) for row in rows]


def indexer(platform: Platform) -> Deps:
    library = platform.library
    return Deps(library.db, platform.objects, library.embedder, library.vectors, library.keywords)


async def test_a_vanished_document_is_deleted_again_everywhere(platform: Platform) -> None:
    await platform.leftover("gone", 1)
    await platform.facts("gone", 1)
    await platform.repaired()
    (event,) = await announced(platform)
    assert event == DocumentDeleted("t", "gone")
    await delete(event, indexer(platform))
    assert await platform.findings() == []


async def test_a_generation_that_is_over_is_taken_back(platform: Platform) -> None:
    await platform.document(generation=2)
    await platform.leftover("d1", 1)
    await platform.facts("d1", 1)
    await platform.repaired()
    for event in await announced(platform):
        assert isinstance(event, DocumentChunked)
        assert event.generation == 1
        await index(event, indexer(platform))
    assert await platform.findings() == []


async def test_a_document_that_is_not_whole_is_parsed_anew_and_shown_meanwhile(
    platform: Platform,
) -> None:
    await platform.document()
    assert isinstance(platform.library.vectors, FakeVectors)
    platform.library.vectors.rows[ACTIVE.vector_collection].clear()
    assert await platform.repaired() == ["it is parsed anew, as generation 2"]
    (event,) = await announced(platform)
    assert isinstance(event, DocumentUploaded)
    row = (await platform.stores.holdings("t", "d1")).row
    assert row is not None
    assert (row["state"], row["generation"], row["active_generation"]) == ("uploaded", 2, 1)
    assert await platform.repaired() == ["a new generation is in work: it replaces this one"]
    assert len(await announced(platform)) == 1


async def test_without_its_original_a_document_is_left_as_it_is(platform: Platform) -> None:
    await platform.document()
    del platform.objects.objects["t/d1/original"]
    assert await platform.repaired() == [NO_ORIGINAL]
    assert await announced(platform) == []
