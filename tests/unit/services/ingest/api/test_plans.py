"""What the API accepts as a chunk plan can be followed, and previewed without a change."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from libs.chunking.cutting import Helpers
from libs.chunking.plan import STRATEGIES, ChunkPlan, override_plan
from libs.contracts import DocumentParsed
from libs.documents.model import ParsedDocument
from libs.documents.serialise import dump_document
from libs.eventbus.testing import InMemoryBus
from libs.storage.keys import parsed_key, text_key
from libs.storage.sql import documents
from services.chunker.handlers import Deps, subscriptions
from services.ingest.api.deps import Ingest
from services.ingest.api.previewing import MAX_CHARS, beginning
from services.ingest.api.schemas import PlanRequest
from tests.fakes_search import FakeEmbedder
from tests.parsed import markdown
from tests.unit.services.ingest.api.conftest import World, assert_problem

SIZES = st.none() | st.integers(0, 21_000)
RECOMMENDED = [ChunkPlan(), ChunkPlan(child_max_chars=800, table_max_chars=1200)]


@given(
    plan=st.sampled_from(RECOMMENDED),
    strategies=st.none() | st.lists(st.sampled_from(STRATEGIES), min_size=1),
    sizes=st.tuples(SIZES, SIZES, SIZES, SIZES),
)
def test_an_accepted_plan_is_followed(
    plan: ChunkPlan, strategies: list[str] | None, sizes: tuple[int | None, ...]
) -> None:
    names = ("child_max_chars", "table_max_chars", "parent_max_chars", "parent_min_chars")
    asked = {"strategies": strategies, **dict(zip(names, sizes, strict=True))}
    try:
        wanted = PlanRequest.model_validate(asked).fields()
    except ValidationError:
        assume(False)
    followed = override_plan(plan, wanted)
    for name in names:
        if name in wanted:
            assert getattr(followed, name) == wanted[name]


@pytest.mark.parametrize(
    "asked",
    [
        {"child_max_chars": 900, "parent_max_chars": 500},
        {"parent_min_chars": 900, "parent_max_chars": 500},
        {"child_max_chars": 49},
        {"strategies": ["magic"]},
    ],
)
def test_plans_that_nobody_could_follow_are_refused(asked: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PlanRequest.model_validate(asked)


SOURCE = "# Handbook\n\n" + "".join(
    f"## Part {n}\n\n" + "Travel is paid for by the office. " * 20 + "\n\n" for n in range(6)
)


def parsed(source: str = SOURCE) -> ParsedDocument:
    return markdown(source)


async def upload(world: World, document: ParsedDocument) -> str:
    """A document at `parsed`, its parse in the store."""
    body = await world.upload(document.text[:1_000].encode(), "handbook.md")
    of, files = ("acme", body["id"], 1), dump_document(document)
    world.objects.objects |= {parsed_key(*of): files.document, text_key(*of): files.text}
    async with world.db.work() as sql:
        counts = {"chars": len(document.text)}
        assert await documents.advance(sql, *of, expect={"uploaded"}, to="parsed", counts=counts)
    return str(body["id"])


async def chunk(world: World, document_id: str, generation: int = 1) -> None:
    of = ("acme", document_id, generation)
    bus = InMemoryBus(world.db, subscriptions(Deps(world.db, world.objects)))
    await bus.deliver(DocumentParsed(*of, parsed_key(*of), text_key(*of), 1))


async def preview(world: World, document_id: str, wanted: Any, **query: Any) -> Any:
    path = f"/v1/documents/{document_id}/plan/preview"
    response = await world.client.post(path, json=wanted, params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_preview_is_what_the_chunker_then_makes(world: World) -> None:
    document_id = await upload(world, parsed())
    wanted = {"child_max_chars": 200, "parent_max_chars": 900, "table_max_chars": 300}
    seen = await preview(world, document_id, wanted, limit=500)
    before = (await world.client.get(f"/v1/documents/{document_id}")).json()
    assert (before["state"], before["plan"]) == ("parsed", None)  # nothing was changed
    put = await world.client.put(f"/v1/documents/{document_id}/plan", json=wanted)
    assert (put.status_code, put.json()["generation"]) == (202, 2)
    await chunk(world, document_id, 2)
    path = f"/v1/documents/{document_id}/chunks"
    made = (await world.client.get(path, params={"limit": 500})).json()["items"]
    names = ("ordinal", "text", "start", "end", "page", "heading_path")
    shown = [[item[name] for name in names] for item in seen["items"]]
    assert shown == [[item[name] for name in names] for item in made]
    assert seen["counts"]["chunks"] == len(made) > 10
    assert seen["complete"]


async def test_a_cut_document_tells_its_plan_the_recommended_one_and_why(world: World) -> None:
    document_id = await upload(world, parsed())
    path = f"/v1/documents/{document_id}/plan"
    assert (await world.client.get(path)).json()["recommended"] is None
    await chunk(world, document_id)
    view = (await world.client.get(path)).json()
    assert view["used"] == view["recommended"]
    assert view["profile"]["heading_count"] == 7
    assert view["profile"]["document_type"] == "manual"
    assert any("7 headings on 2 levels" in reason for reason in view["used"]["reasons"])
    assert len(view["used"]["reasons_zh"]) == len(view["used"]["reasons"])


async def test_a_preview_comes_in_pages(world: World) -> None:
    document_id = await upload(world, parsed())
    whole = await preview(world, document_id, {"child_max_chars": 200})
    assert whole["next"] is None
    items, after = [], -1
    while after is not None:
        page = await preview(world, document_id, {"child_max_chars": 200}, after=after, limit=7)
        items += page["items"]
        after = page["next"]
    assert items == whole["items"]
    parents = await preview(world, document_id, {"child_max_chars": 200}, parents=True)
    assert len(parents["items"]) == whole["counts"]["parents"]
    assert {item["parent_id"] for item in parents["items"]} == {None}
    assert (await preview(world, document_id, {}, after=10**6))["items"] == []


async def test_of_a_long_document_the_beginning_is_previewed(world: World) -> None:
    document_id = await upload(world, parsed(SOURCE * 60))
    seen = await preview(world, document_id, {})
    assert not seen["complete"]
    assert MAX_CHARS * 0.9 < seen["chars"] <= MAX_CHARS
    assert seen["profile"]["heading_count"] == 7 * 60  # what is recommended is for the whole


def test_a_beginning_ends_where_a_block_does_if_it_can() -> None:
    document = parsed("one two\n\nthree four\n\nfive")
    assert beginning(document, 100) == document
    assert beginning(document, 20).text == "one two\n\nthree four"
    assert beginning(document, 5).text == "one t"
    assert beginning(document, 5).blocks == [replace(document.blocks[0], end=5)]


def test_a_beginning_is_more_than_the_heading_above_a_large_block() -> None:
    document = parsed("# Rates\n\n" + "word " * 1_000)
    seen = beginning(document, 500)
    assert seen.text == document.text[:500]
    assert [(block.start, block.end) for block in seen.blocks] == [(0, 7), (9, 500)]


async def test_a_preview_asks_the_embedder_when_the_plan_does(world: World) -> None:
    document_id = await upload(world, parsed())
    seen = await preview(world, document_id, {"strategies": ["structure", "semantic"]})
    assert "no embedder" in seen["plan"]["reasons"][-1]
    ingest: Ingest = world.app.state.ingest
    world.app.state.ingest = replace(ingest, helpers=Helpers(FakeEmbedder()))
    wanted = {"strategies": ["structure", "semantic"], "child_max_chars": 300}
    seen = await preview(world, document_id, wanted)
    assert "cuts by subject" in seen["plan"]["reasons"][-1]


async def test_what_is_not_parsed_cannot_be_previewed(world: World) -> None:
    body = await world.upload()
    response = await world.client.post(f"/v1/documents/{body['id']}/plan/preview", json={})
    assert_problem(response, 409, "conflict")
    response = await world.client.post("/v1/documents/nobody/plan/preview", json={})
    assert response.status_code == 404
    document_id = await upload(world, parsed("Something else. " * 30))
    path = f"/v1/documents/{document_id}/plan/preview"
    response = await world.client.post(path, json={"child_max_chars": 3})
    assert response.status_code == 422
