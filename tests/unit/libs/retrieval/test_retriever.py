"""What comes out of a search, and what never may."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from libs.kernel import TransientError
from libs.retrieval import RetrievalPolicy, Retriever
from libs.storage.ports import IndexHit, Vector
from tests.fakes_search import FakeEmbedder, FakeKeywords, FakeVectors
from tests.library import Library
from tests.servers.databases import sqlite

TRAVEL = "差旅费用的报销上限是每天500元。\n住宿须在三十日内提交发票。"
PARCEL = "Parcels are delivered within three working days.\nReturns are free for thirty days."


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with sqlite(tmp_path) as db:
        yield await Library(db).open()


def retriever(library: Library, policy: RetrievalPolicy | None = None) -> Retriever:
    return Retriever(library.db, library.embedder, library.vectors, library.keywords, policy)


async def test_chinese_and_english_are_found_with_their_scores(library: Library) -> None:
    await library.add("travel", TRAVEL)
    await library.add("parcel", PARCEL)
    search = retriever(library).search
    zh, en = await search("t", "差旅报销上限"), await search("t", "when are parcels delivered?")
    assert (zh[0].document_name, zh[0].text) == ("travel.txt", TRAVEL.split("\n")[0])
    assert en[0].text == PARCEL.split("\n")[0]
    assert TRAVEL[zh[0].start : zh[0].end] == zh[0].text
    scores = en[0].scores
    assert scores.keyword == 1.0
    assert scores.vector is not None
    assert 0.45 <= scores.vector <= 1.0
    assert [hit.scores.fused for hit in en] == sorted((h.scores.fused for h in en), reverse=True)


async def test_keywords_are_searched_while_the_question_is_embedded(library: Library) -> None:
    asked = asyncio.Event()

    class Keywords(FakeKeywords):
        async def search(self, *args: Any, **options: Any) -> list[IndexHit]:
            asked.set()
            return await super().search(*args, **options)

    class SlowEmbedder(FakeEmbedder):
        async def embed_query(self, text: str) -> Vector:
            await asked.wait()
            return await super().embed_query(text)

    library.keywords, library.embedder = Keywords(), SlowEmbedder()
    await library.open()
    await library.add("parcel", PARCEL)
    async with asyncio.timeout(60):
        hits = await retriever(library).search("t", "when are parcels delivered?")
    assert hits[0].text == PARCEL.split("\n")[0]


async def test_another_tenants_chunks_never_come_out(library: Library) -> None:
    await library.add("ours", PARCEL)
    await library.add("theirs", PARCEL, tenant="other")
    hits = await retriever(library).search("t", "parcels delivered")
    assert {hit.document_id for hit in hits} == {"ours"}
    # Even if an index put a foreign row under our tenant, SQL does not show it.
    children = await library.write_chunks("theirs", PARCEL, tenant="other")
    await library.index("theirs", children, tenant="t")
    hits = await retriever(library).search("t", "parcels delivered")
    assert {hit.document_id for hit in hits} == {"ours"}


@pytest.mark.parametrize(
    "changes",
    [{"state": "deleted"}, {"active_generation": 2}, {"active_generation": None}],
)
async def test_what_sql_does_not_show_is_gone_at_once(
    library: Library, changes: dict[str, object]
) -> None:
    await library.add("parcel", PARCEL)
    await library.change("parcel", **changes)
    assert await retriever(library).search("t", "parcels delivered") == []
    evidence = await retriever(library).gather("t", ["When are parcels delivered?"])
    assert (evidence.declined, list(evidence.passages)) == (True, [])


async def test_stale_rows_do_not_crowd_out_visible_ones(library: Library) -> None:
    await library.record("stale", state="deleted")
    lines = "\n".join("Parcels are delivered within three working days." for _ in range(60))
    await library.index("stale", await library.write_chunks("stale", lines))
    await library.add("parcel", "Parcels and letters are delivered within four working days.")
    hits = await retriever(library, RetrievalPolicy(candidates=10)).search("t", "parcels delivered")
    assert [hit.document_id for hit in hits] == ["parcel"]


async def test_domains_and_limit_narrow_a_search(library: Library) -> None:
    await library.add("hr", PARCEL, domain="hr")
    await library.add("it", PARCEL, domain="it")
    search = retriever(library).search
    hits = await search("t", "parcels delivered", domains=["it"])
    assert {hit.document_id for hit in hits} == {"it"}
    assert len(await search("t", "parcels delivered returns free", limit=1)) == 1


async def test_equal_stores_give_equal_answers(library: Library) -> None:
    for i in range(5):
        await library.add(f"d{i}", PARCEL)
    once = await retriever(library).search("t", "parcels delivered")
    assert once == await retriever(library).search("t", "parcels delivered")
    assert [hit.document_id for hit in once[:5]] == ["d0", "d1", "d2", "d3", "d4"]


async def test_evidence_is_a_closed_numbered_set_of_parents(library: Library) -> None:
    await library.add("parcel", f"{PARCEL}\n\nThe office is closed on Sundays.")
    await library.add("travel", TRAVEL)
    questions = ["When are parcels delivered?", "差旅报销上限是多少？"]
    evidence = await retriever(library).gather("t", questions)
    assert [(p.evidence_id, p.question_index) for p in evidence.passages] == [(1, 0), (2, 1)]
    assert [p.text for p in evidence.passages] == [PARCEL, TRAVEL]
    assert evidence.passages[0].hits[0].text == PARCEL.split("\n")[0]
    assert not evidence.declined
    assert evidence.coverage > 0.5


async def test_a_question_foreign_to_the_library_is_declined(library: Library) -> None:
    await library.add("parcel", PARCEL)
    await library.add("travel", TRAVEL)
    for question in ("How do volcanoes form under the ocean?", "火山是怎样形成的？"):
        evidence = await retriever(library).gather("t", [question])
        assert evidence.declined
        assert evidence.reason


async def test_an_empty_library_declines(library: Library) -> None:
    evidence = await retriever(library).gather("t", ["When are parcels delivered?"])
    assert (evidence.declined, evidence.coverage) == (True, 0.0)
    assert (await retriever(library).gather("t", [])).declined


async def test_budgets_hold_and_copies_take_no_room(library: Library) -> None:
    block = "Parcels are delivered soon, number {0} of {0}. " * 20
    text = "\n\n".join(block.format(i) for i in range(6))
    await library.add("one", text)
    await library.add("two", text)
    policy = RetrievalPolicy(question_chars=1_500, total_chars=2_000, parent_chars=900)
    evidence = await retriever(library, policy).gather("t", ["When are parcels delivered?"] * 2)
    assert sum(len(p.text) for p in evidence.passages) <= 2_000
    assert all(len(p.text) <= 900 for p in evidence.passages)
    assert len({p.text for p in evidence.passages}) == len(evidence.passages)
    for passage in evidence.passages:
        assert text[passage.start : passage.end] == passage.text


async def test_floors_keep_weak_hits_out(library: Library) -> None:
    await library.add("parcel", PARCEL)
    policy = RetrievalPolicy(vector_floor=1.01, keyword_floor=1.01)
    assert await retriever(library, policy).search("t", "parcels") == []
    weak = replace(policy, keyword_floor=0.35)
    assert len(await retriever(library, weak).search("t", "parcels")) == 1


@pytest.mark.parametrize("kind", ["vectors", "keywords"])
async def test_a_store_that_is_away_is_a_transient_error(library: Library, kind: str) -> None:
    store = {"vectors": library.vectors, "keywords": library.keywords}[kind]
    assert isinstance(store, FakeVectors | FakeKeywords)
    store.away = True
    with pytest.raises(TransientError):
        await retriever(library).search("t", "parcels")


async def test_before_the_indexer_ever_ran_searching_is_a_transient_error(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as db:
        with pytest.raises(TransientError, match="no search index yet"):
            await retriever(Library(db)).search("t", "parcels")
