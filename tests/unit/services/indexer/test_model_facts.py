"""What a model claims is stored only where the chunk says it word for word, within a budget."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, select

from libs.contracts import DocumentIndexed
from libs.documents.model import Chunk
from libs.storage.sql import documents, enrichments
from libs.storage.sql.tables import graph_relations
from services.indexer.deps import Deps
from services.indexer.enriching import enrich
from services.indexer.model_facts import checked
from tests.fakes import FakeObjectStore
from tests.fakes_answering import FakeChatModel
from tests.library import Library
from tests.servers.databases import sqlite

TEXT = "The Moonshot Guild approves expeditions above 5,000 yuan."
CHUNK = Chunk("d.1.c0", 0, TEXT, 100, 100 + len(TEXT), None, (), "d.1.p0")
GUILD = {"name": "Moonshot Guild", "kind": "organisation"}
EXPEDITIONS = {"name": "expeditions", "kind": "activity"}
RELATION = {
    "verb": "approves",
    "subject": "expeditions",
    "object": "Moonshot Guild",
    "quote": TEXT,
}
ANSWER: dict[str, Any] = {"entities": [GUILD, EXPEDITIONS], "relations": [RELATION]}


def test_what_stands_in_the_chunk_is_kept_with_bounds_that_the_rules_read() -> None:
    entities, (fact,) = checked(ANSWER, CHUNK)
    assert [e.name for e in entities] == ["organisation:moonshot guild", "activity:expedition"]
    assert TEXT[entities[0].start - 100 : entities[0].end - 100] == "Moonshot Guild"
    assert (fact.verb, fact.subjects, fact.objects) == (
        "approves",
        ["activity:expedition"],
        ["organisation:moonshot guild"],
    )
    (bound,) = fact.conditions
    assert TEXT[bound.start - 100 : bound.end - 100] == "above 5,000 yuan"


@pytest.mark.parametrize(
    "answer",
    [
        {"entities": [{"name": "Sunshine Guild", "kind": "organisation"}, EXPEDITIONS]},
        {"entities": [GUILD, {**EXPEDITIONS, "kind": "vegetable"}]},
        {"entities": [GUILD]},
        {"relations": [{**RELATION, "quote": "The guild approves everything."}]},
        {"relations": [{**RELATION, "verb": "loves"}]},
        {"relations": "none"},
        {"entities": None},
        {"entities": ["Moonshot Guild", 3]},
    ],
)
def test_what_the_chunk_does_not_say_is_dropped(answer: dict[str, Any]) -> None:
    _, facts = checked({**ANSWER, **answer}, CHUNK)
    assert facts == []


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with sqlite(tmp_path) as db:
        yield await Library(db).open()


async def enriched(
    library: Library, model: FakeChatModel, *, text: str = TEXT, calls: int = 20
) -> None:
    await library.record("d", state="chunked", active=None)
    await library.write_chunks("d", "\n".join([text] * 6))
    async with library.db.work() as sql:
        await documents.activate(sql, "t", "d", 1)
    stores = (library.embedder, library.vectors, library.keywords)
    deps = Deps(library.db, FakeObjectStore(), *stores, chat=model, chat_calls=calls)
    await enrich(DocumentIndexed("t", "d", 1, 6), deps)


async def chunks_in(library: Library, table: Table) -> set[str]:
    async with library.db.reading() as sql:
        return {row["chunk_id"] for row in await sql.rows(select(table.c.chunk_id))}


async def test_a_documents_budget_bounds_the_calls(library: Library) -> None:
    model = FakeChatModel(plan=ANSWER)
    await enriched(library, model, calls=5)
    assert len(model.prompts) == 5
    assert await chunks_in(library, graph_relations) == {f"d.1.c{n}" for n in range(5)}
    async with library.db.reading() as sql:
        progress = await enrichments.find(sql, "t", "d")
    assert progress is not None
    assert (progress["state"], progress["model_calls"]) == ("done", 5)


async def test_while_the_model_is_away_the_rules_facts_stand(library: Library) -> None:
    model = FakeChatModel()
    await enriched(library, model, text="Loans need approval by the board of directors.")
    assert len(model.prompts) == 6
    async with library.db.reading() as sql:
        progress = await enrichments.find(sql, "t", "d")
    assert progress is not None
    assert progress["state"] == "done"
    assert await chunks_in(library, graph_relations) == {f"d.1.c{n}" for n in range(6)}
