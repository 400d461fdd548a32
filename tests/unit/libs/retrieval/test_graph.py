"""What the graph lifts, and what it never does."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from libs.documents.graph import extract
from libs.retrieval import Retriever, graph
from libs.storage.sql import graph as stored
from tests.library import Library
from tests.servers.databases import sqlite

ABOVE = "Reimbursements above 20,000 yuan need approval by the finance director."
UP_TO = "Reimbursements up to 20,000 yuan need approval by the general manager."
REPORTS = "The finance director reports to the board of directors."
PURCHASES = "Procurement above 20,000 yuan needs approval by the CEO."


@dataclass
class World:
    library: Library

    async def add(self, document_id: str, *lines: str, tenant: str = "t", domain: str = "") -> None:
        """A visible document with its graph."""
        await self.library.add(document_id, "\n".join(lines), tenant=tenant, domain=domain)
        found: dict[str, tuple[list[stored.Entity], list[stored.Fact]]] = {}
        for ordinal, line in enumerate(lines):
            facts = [
                stored.Fact(r.verb, r.subjects, r.objects, r.conditions, r.start, r.end, "rules")
                for r in extract(line).relations
            ]
            found[f"{document_id}.1.c{ordinal}"] = ([], facts)
        async with self.library.db.work() as sql:
            await stored.write(sql, tenant, document_id, 1, found)

    async def lifted(self, question: str, **more: object) -> dict[str, float]:
        hits = await graph.search(self.library.db, "t", question, **more)  # type: ignore[arg-type]
        return {hit.chunk_id: hit.score for hit in hits}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with sqlite(tmp_path) as db:
        world = World(await Library(db).open())
        await world.add("d", ABOVE, UP_TO, PURCHASES, REPORTS)
        yield world


@pytest.mark.parametrize(
    ("question", "chunks"),
    [
        ("Who approves a reimbursement of 35,000 yuan?", ["d.1.c0"]),
        ("3.5万元的报销由谁审批？", ["d.1.c0"]),  # names meet across languages
        ("Who approves a reimbursement of 8,000 yuan?", ["d.1.c1"]),
        ("Who approves a reimbursement of exactly 20 000 yuan?", ["d.1.c1"]),
        ("Who approves a purchase of 35,000 yuan?", ["d.1.c2"]),
        ("Who approves a donation of 35,000 yuan?", []),
        ("Who approves a reimbursement?", []),  # one name and no number: no reason to lift
        ("Does the finance director approve reimbursements?", ["d.1.c0"]),
        ("What costs 35,000 yuan?", []),
    ],
)
async def test_only_a_rule_that_fits_lifts(world: World, question: str, chunks: list[str]) -> None:
    assert list(await world.lifted(question)) == chunks


async def test_a_second_step_follows_whom_the_first_leads_to(world: World) -> None:
    question = "Who approves a reimbursement of 35,000 yuan, and who do they report to?"
    found = await world.lifted(question)
    assert list(found) == ["d.1.c0", "d.1.c3"]
    assert found["d.1.c3"] < found["d.1.c0"]


@pytest.mark.parametrize("change", [{"state": "deleted"}, {"active_generation": 2}])
async def test_what_sql_does_not_show_lifts_nothing(
    world: World, change: dict[str, object]
) -> None:
    await world.library.change("d", **change)
    assert await world.lifted("Who approves a reimbursement of 35,000 yuan?") == {}


async def test_other_tenants_and_domains_lift_nothing(world: World) -> None:
    await world.add("theirs", ABOVE, tenant="other")
    await world.add("law", ABOVE, domain="law")
    question = "Who approves a reimbursement of 35,000 yuan?"
    assert set(await world.lifted(question)) == {"d.1.c0", "law.1.c0"}
    assert set(await world.lifted(question, domains=["law"])) == {"law.1.c0"}


async def test_the_rule_that_fits_comes_first_and_its_score_is_shown(world: World) -> None:
    library = world.library
    search = Retriever(library.db, library.embedder, library.vectors, library.keywords).search
    above = await search("t", "Who approves a reimbursement of 35,000 yuan?")
    below = await search("t", "Who approves a reimbursement of 8,000 yuan?")
    assert (above[0].text, below[0].text) == (ABOVE, UP_TO)
    assert above[0].scores.graph == 1.0
    assert {hit.scores.graph for hit in above[1:]} == {None}


async def test_a_chunk_that_the_other_channels_miss_is_added(world: World) -> None:
    library = world.library
    hidden = await library.write_chunks("late", ABOVE.replace("20,000", "90,000"))
    await library.record("late")
    facts = [
        stored.Fact(r.verb, r.subjects, r.objects, r.conditions, r.start, r.end, "rules")
        for r in extract(hidden[0].text).relations
    ]
    async with library.db.work() as sql:
        await stored.write(sql, "t", "late", 1, {hidden[0].chunk_id: ([], facts)})
    search = Retriever(library.db, library.embedder, library.vectors, library.keywords).search
    hits = await search("t", "Who approves a reimbursement of 95,000 yuan?")
    (added,) = [hit for hit in hits if hit.document_id == "late"]
    assert (added.scores.vector, added.scores.keyword, added.scores.graph) == (None, None, 1.0)


async def test_a_question_of_very_many_names_is_answered(world: World) -> None:
    forms = " ".join(f"Form A{n}" for n in range(600))
    question = f"Who approves a reimbursement of 35,000 yuan? {forms}"
    assert list(await world.lifted(question)) == ["d.1.c0"]


async def test_the_rule_that_fits_is_found_among_hundreds_about_the_same(world: World) -> None:
    lines = [
        f"Reimbursements from {step},000 to {step},999 yuan need approval by the CEO."
        for step in range(100, 400)
    ]
    await world.add("e", *lines)
    found = await world.lifted("Who approves a reimbursement of 350,500 yuan?")
    assert set(found) == {"d.1.c0", "e.1.c250"}
