"""The graph follows once a document is searchable: batch by batch, and never at its expense."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Delete, Executable, select

from libs.contracts import DocumentDeleted, DocumentIndexed
from libs.eventbus.subscriptions import Failure
from libs.kernel import TransientError
from libs.storage.sql import documents, enrichments, graph
from libs.storage.sql.tables import graph_entities, graph_relations
from services.indexer import enriching
from services.indexer.catching_up import DueGraphs, adopt_all
from services.indexer.deps import Deps
from services.indexer.handlers import delete
from tests.fakes import FakeObjectStore
from tests.library import Library
from tests.servers.databases import sqlite

RULE = "Reimbursements above 20,000 yuan need approval by the finance director."
TEXT = "\n".join([f"line {n} about nothing" for n in range(9)] + [RULE])


@dataclass
class World:
    library: Library
    deps: Deps
    read: list[list[int]] = field(default_factory=list)  # ordinals of each batch that was read

    async def shown(self, document_id: str = "d", *, generation: int = 1) -> DocumentIndexed:
        """The generation is searchable, and the event says so."""
        event = await self.library.chunked(document_id, TEXT, generation=generation)
        async with self.library.db.work() as sql:
            assert await documents.activate(sql, "t", document_id, generation)
        return DocumentIndexed("t", document_id, generation, event.child_count)

    async def progress(self, document_id: str = "d") -> tuple[Any, ...] | None:
        async with self.library.db.reading() as sql:
            row = await enrichments.find(sql, "t", document_id)
        return None if row is None else (row["generation"], row["state"], row["next_ordinal"])

    async def rows(self, table: Any) -> list[dict[str, Any]]:
        async with self.library.db.reading() as sql:
            return [dict(row) for row in await sql.rows(select(table))]

    async def generations(self, document_id: str = "d") -> dict[int, int]:
        async with self.library.db.reading() as sql:
            return await graph.generations(sql, "t", document_id)


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(enriching, "BATCH", 3)
    async with sqlite(tmp_path) as db:
        library = await Library(db).open()
        objects = FakeObjectStore()
        deps = Deps(db, objects, library.embedder, library.vectors, library.keywords)
        world = World(library, deps)
        read = enriching.by_rules

        def counted(batch: Any) -> Any:
            world.read.append([chunk.ordinal for chunk in batch])
            return read(batch)

        monkeypatch.setattr(enriching, "by_rules", counted)
        yield world


async def test_what_rules_find_is_stored_with_the_chunk_that_proves_it(world: World) -> None:
    await enriching.enrich(await world.shown(), world.deps)
    assert await world.progress() == (1, "done", 10)
    names = {
        row["name"]: TEXT[row["start"] : row["end"]] for row in await world.rows(graph_entities)
    }
    assert names == {
        "activity:reimbursement": "Reimbursements",
        "role:finance director": "finance director",
    }
    (relation,) = await world.rows(graph_relations)
    assert (relation["verb"], relation["chunk_id"]) == ("approves", "d.1.c9")
    (condition,) = relation["conditions"]
    assert TEXT[condition["start"] : condition["end"]] == "above 20,000 yuan"
    assert (condition["unit"], condition["low"], condition["low_open"]) == ("CNY", "20000", True)


async def test_a_killed_worker_goes_on_where_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = await world.shown()
    written = graph.write

    async def dies(*args: Any) -> None:
        if len(world.read) == 3:
            raise TransientError("killed")
        await written(*args)

    monkeypatch.setattr(graph, "write", dies)
    with pytest.raises(TransientError):
        await enriching.enrich(event, world.deps)
    assert await world.progress() == (1, "due", 6)
    monkeypatch.setattr(graph, "write", written)
    await enriching.enrich(event, world.deps)
    assert world.read == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [6, 7, 8], [9]]
    assert await world.progress() == (1, "done", 10)


async def test_a_repeat_reads_nothing_and_doubles_nothing(world: World) -> None:
    event = await world.shown()
    await enriching.enrich(event, world.deps)
    before = await world.generations()
    world.read.clear()
    await enriching.enrich(event, world.deps)
    assert (world.read, await world.generations()) == ([], before)


@pytest.mark.parametrize("what", ["new generation", "deleted"])
async def test_what_is_over_meanwhile_writes_nothing_more(
    world: World, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = await world.shown()
    advance, left = enrichments.advance, 4

    async def overtaken(sql: Any, seen: Any, **values: Any) -> bool:
        """Just before the last batch is written, in the same order as two processes would."""
        nonlocal left
        left -= 1
        if left == 0 and what == "deleted":
            await documents.tombstone(sql, "t", "d")
            await enrichments.drop(sql, "t", "d")
        elif left == 0:
            await enrichments.begin(sql, "t", "d", 2)
        return await advance(sql, seen, **values)

    monkeypatch.setattr(enrichments, "advance", overtaken)
    await enriching.enrich(event, world.deps)
    assert left == 0
    assert await world.generations() == {}
    assert await world.progress() == (None if what == "deleted" else (2, "due", 0))


async def test_a_deletion_leaves_nothing(world: World) -> None:
    await enriching.enrich(await world.shown(), world.deps)
    async with world.library.db.work() as sql:
        await documents.tombstone(sql, "t", "d")
    await delete(DocumentDeleted("t", "d"), world.deps)
    assert (await world.generations(), await world.progress()) == ({}, None)


async def test_what_writers_of_facts_compare_is_dropped_before_the_facts(world: World) -> None:
    dropped: list[str] = []
    async with world.library.db.work() as sql:
        execute = sql.execute

        async def told(statement: Executable, *args: Any) -> Any:
            assert isinstance(statement, Delete)
            dropped.append(str(statement.table.description))
            return await execute(statement, *args)

        sql.execute = told  # type: ignore[method-assign]
        await enrichments.drop(sql, "t", "d")
    assert dropped[0] == "enrichments"
    assert len(dropped) == 1 + len(graph.TABLES)


async def test_a_new_generation_drops_the_graph_of_the_old_one(world: World) -> None:
    await enriching.enrich(await world.shown(), world.deps)
    event = await world.shown(generation=2)
    assert await world.generations() == {}
    await enriching.enrich(event, world.deps)
    assert set(await world.generations()) == {2}


async def test_a_failed_graph_fails_no_document(world: World) -> None:
    event = await world.shown()
    await enriching.give_up(event, Failure("odd", "It is odd.", 5, permanent=False), world.deps)
    assert await world.progress() == (1, "failed", 0)
    async with world.library.db.reading() as sql:
        row = await documents.load(sql, "t", "d")
    assert (row["state"], row["active_generation"]) == ("indexed", 1)


async def test_documents_from_before_the_graph_are_caught_up_with(world: World) -> None:
    for document_id in ("old1", "old2"):
        await world.library.add(document_id, TEXT)
    await world.shown("new")
    await world.library.record("failed", state="failed", active=None)
    assert await adopt_all(world.library.db) == 2
    assert await adopt_all(world.library.db) == 0
    async with world.library.db.reading() as sql:
        works = list(await DueGraphs().unfinished(sql, "", 10))
    assert [(id_, work.group_id, work.lane) for id_, work in works] == [
        (id_, "indexer", "enrichment") for id_ in ("new", "old1", "old2")
    ]
    for _, work in works:
        assert isinstance(work.event, DocumentIndexed)
        await enriching.enrich(work.event, world.deps)
    async with world.library.db.reading() as sql:
        assert list(await DueGraphs().unfinished(sql, "", 10)) == []
    assert set(await world.generations("old2")) == {1}


async def test_better_rules_read_everything_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enriching.enrich(await world.shown(), world.deps)
    monkeypatch.setattr(enrichments, "RULES_VERSION", enrichments.RULES_VERSION + 1)
    assert await adopt_all(world.library.db) == 1
    assert await world.progress() == (1, "due", 0)
