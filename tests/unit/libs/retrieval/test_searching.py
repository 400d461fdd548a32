"""Filters, neighbours, near-copies and the reasons of a search."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from libs.kernel import PermanentError, TransientError
from libs.retrieval import Query, RetrievalPolicy, Retriever, channels
from libs.storage.ports import Vector
from libs.storage.sql.document_filter import DocumentFilter
from tests.library import Library
from tests.servers.databases import sqlite

PARCEL = "Parcels are delivered within three working days."
LETTERS = "Letters are delivered by hand on Mondays."


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with sqlite(tmp_path) as db:
        yield await Library(db).open()


@dataclass
class ScriptedReranker:
    """Prefers long texts, unless it fails."""

    error: Exception | None = None
    name: str = "scripted"
    asked: list[Sequence[str]] = field(default_factory=list)

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append(texts)
        if self.error is not None:
            raise self.error
        return [float(len(text)) for text in texts]


def retriever(
    library: Library, *, reranker: ScriptedReranker | None = None, **numbers: float
) -> Retriever:
    policy = RetrievalPolicy(**numbers)  # type: ignore[arg-type]
    stores = (library.db, library.embedder, library.vectors, library.keywords)
    return Retriever(*stores, policy, reranker)


async def crowd(library: Library, count: int) -> None:
    """Nearer documents without the tag, and one behind them all that has it."""
    for i in range(count):
        await library.add(f"d{i}", f"Parcels are delivered within {i} working days.")
    await library.add("wanted", "Some parcels are slow.", tags=["slow"])


@pytest.mark.parametrize("pushed", [300, 0])
async def test_a_list_is_full_however_far_down_the_matching_rows_lie(
    library: Library, monkeypatch: pytest.MonkeyPatch, pushed: int
) -> None:
    monkeypatch.setattr(channels, "PUSHED_DOCUMENTS", pushed)
    await crowd(library, 40)
    query = Query("t", "parcels delivered", filters=DocumentFilter(tags=["slow"]))
    result = await retriever(library, candidates=4, vector_floor=0.1).find(query)
    assert [hit.document_id for hit in result.hits] == ["wanted"]


async def test_rows_beyond_what_an_index_gives_are_found_by_naming_documents(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "PUSHED_DOCUMENTS", 0)
    monkeypatch.setattr(channels, "MAX_ROWS", 5)
    await crowd(library, 40)
    query = Query("t", "parcels delivered", filters=DocumentFilter(tags=["slow"]))
    result = await retriever(library, candidates=4, vector_floor=0.1).find(query)
    assert [hit.document_id for hit in result.hits] == ["wanted"]


async def test_a_filter_that_nothing_matches_finds_nothing_and_says_so(library: Library) -> None:
    await library.add("parcel", PARCEL)
    query = Query("t", "parcels", filters=DocumentFilter(tags=["none"]), explain=True)
    result = await retriever(library).find(query)
    assert (list(result.hits), result.explanation is not None) == ([], True)
    assert result.explanation is not None
    assert result.explanation.matching_documents == 0
    assert not result.explanation.gate.passed


async def test_filters_by_document_and_time(library: Library) -> None:
    for day in (1, 2, 3):
        await library.add(f"d{day}", PARCEL + f" Day {day}.")
        await library.change(f"d{day}", created_at=day)
    find = retriever(library).find
    by_time = await find(Query("t", "parcels", filters=DocumentFilter((), (), 2, 3)))
    by_id = await find(Query("t", "parcels", filters=DocumentFilter(document_ids=["d1", "d3"])))
    assert {hit.document_id for hit in by_time.hits} == {"d2"}
    assert {hit.document_id for hit in by_id.hits} == {"d1", "d3"}


async def test_a_longer_list_begins_with_the_shorter_one_and_is_full(library: Library) -> None:
    lines = "\n".join(f"Parcels number {i} are delivered within {i} days." for i in range(40))
    await library.add("many", lines)
    search = retriever(library, candidates=10).search
    short = await search("t", "parcels delivered", limit=5)
    full = await search("t", "parcels delivered", limit=40)
    assert full[:5] == short
    assert len(full) == 40


@pytest.mark.parametrize("reranker", [None, ScriptedReranker()])
async def test_copies_do_not_change_how_a_longer_list_begins(
    library: Library, reranker: ScriptedReranker | None
) -> None:
    for i in range(3):
        await library.add(f"copy{i}", PARCEL)
    for i in range(20):
        await library.add(f"d{i}", f"Parcels number {i} are delivered within {i} days.")
    search = retriever(library, reranker=reranker, candidates=6, vector_floor=0.1).search
    full = await search("t", "parcels delivered within three working days", limit=20)
    assert len({hit.chunk_id for hit in full}) == 20
    for limit in range(1, 20):
        hits = await search("t", "parcels delivered within three working days", limit=limit)
        assert [hit.chunk_id for hit in hits] == [hit.chunk_id for hit in full[:limit]]


async def test_neighbours_are_the_chunks_beside_a_hit_in_its_document(library: Library) -> None:
    text = f"First.\nSecond.\n{PARCEL}\n\nAfter a blank line.\nLast."
    await library.add("doc", text)
    await library.write_chunks("doc", text, generation=2)  # not shown yet
    await library.add("doc2", "Nothing of interest.\nNothing either.")
    [hit] = (await retriever(library).find(Query("t", PARCEL, limit=1, neighbours=3))).hits
    assert [n.position for n in hit.neighbours] == [-2, -1, 1, 2]
    assert [n.text for n in hit.neighbours] == ["First.", "Second.", "After a blank line.", "Last."]
    assert all(text[n.start : n.end] == n.text for n in hit.neighbours)
    assert {n.chunk_id.split(".")[1] for n in hit.neighbours} == {"1"}


async def test_copies_do_not_fill_the_list(library: Library) -> None:
    for i in range(4):
        await library.add(f"copy{i}", PARCEL)
    await library.add("letters", LETTERS)
    hits = await retriever(library).search("t", "parcels and letters delivered", limit=2)
    assert {hit.document_id for hit in hits} == {"copy0", "letters"}
    hits = await retriever(library).search("t", "parcels and letters delivered", limit=5)
    assert [hit.duplicate_of is not None for hit in hits] == [False, False, True, True, True]
    assert {hit.document_id for hit in hits} == {"letters", *(f"copy{i}" for i in range(4))}


async def test_an_explanation_says_why_each_hit_stands_where_it_stands(library: Library) -> None:
    await library.add("parcel", PARCEL)
    await library.add("letters", LETTERS)
    await library.add("stale", PARCEL + " Once.")
    await library.change("stale", active_generation=2)
    await library.add("gone", PARCEL + " Never.")
    await library.change("gone", state="deleted")
    theirs = await library.write_chunks("theirs", PARCEL, tenant="other")
    await library.index("theirs", theirs, tenant="t")
    policy = RetrievalPolicy()
    result = await retriever(library).find(Query("t", "parcels delivered when?", explain=True))
    why = result.explanation
    assert why is not None
    assert why.channels["vector"].found == 5
    assert why.channels["vector"].dropped == {"stale": 1, "deleted": 1, "foreign": 1}
    assert why.channels["keyword"].dropped == why.channels["vector"].dropped
    weights = {term.term: term.weight for term in why.terms}
    assert weights["parcel"] > 0
    for rank, hit in enumerate(result.hits, start=1):
        of_hit = why.hits[hit.chunk_id]
        assert (of_hit.rank, of_hit.fused_rank) == (rank, rank)
        assert sum(of_hit.adds.values()) == pytest.approx(hit.scores.fused)
        assert of_hit.channels["vector"].score == hit.scores.vector
        assert of_hit.channels["keyword"].score == hit.scores.keyword
        assert of_hit.channels["keyword"].floor == policy.keyword_floor
        assert {t.term: t.weight for t in of_hit.matched_terms}.items() <= weights.items()
    best = why.hits[result.hits[0].chunk_id]
    assert {term.term for term in best.matched_terms} == {"parcel", "deliv"}
    assert best.channels["keyword"].rank == 1
    assert best.channels["keyword"].raw > 0
    gate = why.gate
    assert gate.passed == (gate.coverage + gate.nearest >= gate.needed)
    assert {"embed_query", "vector", "keyword", "hydration"} <= why.seconds.keys()
    assert (await retriever(library).find(Query("t", "parcels"))).explanation is None


async def test_a_rerank_model_puts_the_first_hits_in_its_order(library: Library) -> None:
    for i, end in enumerate(("", " slowly", " slowly and surely", " by bicycle or by train")):
        await library.add(f"d{i}", f"Parcels are delivered{end}.")
    model = ScriptedReranker()
    query = Query("t", "parcels delivered", explain=True)
    result = await retriever(library, reranker=model, rerank_top=3).find(query)
    ordered = [hit.document_id for hit in result.hits]
    fused = [hit.document_id for hit in (await retriever(library).find(query)).hits]
    assert sorted(fused[:3], reverse=True) == ordered[:3] != fused[:3]
    assert ordered[3:] == fused[3:]
    assert [hit.scores.rerank is not None for hit in result.hits] == [True, True, True, False]
    why = result.explanation
    assert why is not None
    assert why.rerank is not None
    assert (why.rerank.model, why.rerank.reranked, why.rerank.error) == ("scripted", 3, "")
    moved = why.hits[result.hits[0].chunk_id]
    assert (moved.rank, moved.fused_rank) == (1, fused.index(ordered[0]) + 1)


@pytest.mark.parametrize("error", [TransientError("away"), PermanentError("refused", "bad key")])
async def test_without_the_rerank_model_the_fused_order_stands(
    library: Library, error: Exception
) -> None:
    for i in range(3):
        await library.add(f"d{i}", f"Parcels are delivered{' slowly' * i}.")
    query = Query("t", "parcels delivered", explain=True)
    result = await retriever(library, reranker=ScriptedReranker(error)).find(query)
    assert list(result.hits) == list((await retriever(library).find(query)).hits)
    assert result.explanation is not None
    assert result.explanation.rerank is not None
    assert (result.explanation.rerank.reranked, result.explanation.rerank.error) == (0, str(error))


async def test_reasons_add_up_in_a_list_longer_than_the_usual_candidates(library: Library) -> None:
    lines = "\n".join(f"Parcels number {i} are delivered within {i} days." for i in range(40))
    await library.add("many", lines)
    query = Query("t", "parcels delivered number 39 within 7 days", limit=40, explain=True)
    result = await retriever(library, candidates=10).find(query)
    assert result.explanation is not None
    assert len(result.hits) > 10
    for hit in result.hits:
        adds = result.explanation.hits[hit.chunk_id].adds
        assert sum(adds.values()) == pytest.approx(hit.scores.fused)


async def test_the_gate_says_the_same_however_few_hits_are_shown(library: Library) -> None:
    for i in range(4):
        await library.add(f"copy{i}", PARCEL)
    await library.add("letters", LETTERS)
    text = "parcels delivered within three working days, and letters?"
    find = retriever(library, candidates=20, vector_floor=0.1).find
    gates = []
    for limit in (1, 2, 10):
        why = (await find(Query("t", text, limit=limit, explain=True))).explanation
        assert why is not None
        gates.append((why.gate.passed, why.gate.coverage, why.gate.nearest))
    assert len(set(gates)) == 1


async def test_an_index_is_never_asked_for_more_rows_than_it_gives(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "PUSHED_DOCUMENTS", 0)
    monkeypatch.setattr(channels, "MAX_ROWS", 50)
    await crowd(library, 10)
    asked: list[int] = []
    search = library.vectors.search

    async def counted(name: str, tenant: str, query: Vector, limit: int, **more: Any) -> Any:
        asked.append(limit)
        return await search(name, tenant, query, limit, **more)

    monkeypatch.setattr(library.vectors, "search", counted)
    query = Query("t", "parcels delivered", 4, filters=DocumentFilter(tags=["slow"]))
    result = await retriever(library, candidates=4, vector_floor=0.1).find(query)
    assert [hit.document_id for hit in result.hits] == ["wanted"]
    assert max(asked) <= 50
