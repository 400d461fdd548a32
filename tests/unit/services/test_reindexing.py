"""A re-index of real pipelines: nothing is parsed again, and what happens meanwhile is kept."""

import contextlib

import pytest
from sqlalchemy import RowMapping

from libs.contracts import DocumentChunked, DocumentParsed
from libs.eventbus.subscriptions import Failure
from libs.retrieval import Retriever
from libs.service.failures import failing
from libs.storage.keys import generation_prefix
from libs.storage.sql import active_index, documents, index_builds
from services.indexer.rebuilding import Rebuilder, RebuildPolicy
from tests.document_life import TENANT, Life
from tests.fakes_search import FakeEmbedder
from tests.library import ACTIVE

PARAGRAPHS = [f"paragraph {n} about travel expenses." for n in range(20)]
TEXT = "\n\n".join(PARAGRAPHS)


def rebuilder(life: Life) -> Rebuilder:
    async def flush(_name: str) -> None:
        pass

    policy = RebuildPolicy(keep_old_s=0.0)
    return Rebuilder(life.indexer, flush=flush, report=lambda _: None, policy=policy)


async def start(life: Life, *, rechunk: bool) -> None:
    async with life.db.work() as sql:
        await index_builds.start(sql, rechunk=rechunk)


async def state(life: Life) -> str:
    async with life.db.reading() as sql:
        row = await index_builds.latest(sql)
    assert row is not None
    return str(row["state"])


async def finish(life: Life) -> None:
    """Builder and pipeline take turns, until the build is over."""
    builder = rebuilder(life)
    for _ in range(60):
        await builder.step()
        await life.settle()
        if await state(life) == "done":
            return
    raise AssertionError(await state(life))


async def rows(life: Life) -> dict[str, RowMapping]:
    async with life.db.reading() as sql:
        found = {id_: await documents.find(sql, TENANT, id_) for id_ in life.ids}
    return {id_: row for id_, row in found.items() if row is not None}


async def held(life: Life) -> dict[str, tuple[int, int]]:
    """What the active set has of each document, and there is no other set."""
    async with life.db.reading() as sql:
        active = await active_index.read(sql)
    assert set(life.vectors.rows) == {active.vector_collection}
    assert set(life.keywords.rows) == {active.keyword_index}
    return {
        id_: (
            await life.vectors.count(active.vector_collection, TENANT, id_),
            await life.keywords.count(active.keyword_index, TENANT, id_),
        )
        for id_ in life.ids
    }


async def found(life: Life) -> set[str]:
    retriever = Retriever(life.db, FakeEmbedder(), life.vectors, life.keywords)
    return {hit.document_id for hit in await retriever.search(TENANT, "travel expenses", limit=99)}


async def test_everything_is_cut_anew_from_its_stored_parse(life: Life) -> None:
    for number in range(7):
        await life.upload(f"{number}\n\n{TEXT}")
    await life.ask("fine plan", life.ids[0])
    await life.settle()
    before, parsed = await rows(life), life.parser.calls
    await start(life, rechunk=True)
    await finish(life)
    assert life.parser.calls == parsed
    after = await rows(life)
    for id_, row in after.items():
        assert row["state"] == "indexed"
        assert row["active_generation"] == before[id_]["active_generation"] + 1
        assert row["counts"] == before[id_]["counts"]
        assert row["plan"]["requested"] == before[id_]["plan"]["requested"]
        keys = await life.objects.keys(generation_prefix(TENANT, id_, row["generation"]))
        assert len(keys) == 2
    chunks = {id_: row["counts"]["chunks"] for id_, row in after.items()}
    assert await held(life) == {id_: (count, count) for id_, count in chunks.items()}
    assert await found(life) == set(life.ids)


async def test_what_is_cut_anew_yields_to_live_documents_and_leaves_the_urgent_lane(
    life: Life,
) -> None:
    await life.upload(TEXT, priority="urgent")
    await life.settle()
    await start(life, rechunk=True)
    seen = len(life.history)
    await finish(life)
    events = [e for e in life.history[seen:] if isinstance(e, DocumentParsed | DocumentChunked)]
    assert {event.priority for event in events} == {"background"}
    assert len(events) == 2


async def test_few_documents_at_a_time_are_cut_anew(life: Life) -> None:
    for number in range(7):
        await life.upload(f"{number}\n\n{TEXT}")
    await life.settle()
    await start(life, rechunk=True)
    builder = rebuilder(life)
    for _ in range(5):
        await builder.step()
    assert [row["state"] for row in (await rows(life)).values()].count("parsed") == 4
    await finish(life)
    assert {row["active_generation"] for row in (await rows(life)).values()} == {2}


@pytest.mark.parametrize("why", ["no parse", "chunker fails", "cancelled"])
async def test_a_document_that_cannot_be_cut_anew_keeps_its_chunks(life: Life, why: str) -> None:
    await life.upload(TEXT)
    await life.settle()
    (id_,) = life.ids
    before, parsed = (await held(life))[id_], life.parser.calls
    if why == "no parse":
        await life.objects.delete_prefix(generation_prefix(TENANT, id_, 1))
    await start(life, rechunk=True)
    builder = rebuilder(life)
    for _ in range(3):
        await builder.step()
    if why == "chunker fails":
        (event,) = life.pending
        assert isinstance(event, DocumentParsed)
        life.pending.clear()
        await failing(life.db, "chunk")(event, Failure("broken", "", 1, permanent=True))
    elif why == "cancelled":
        await life.ask("cancel", id_)
    await finish(life)
    assert (await rows(life))[id_]["active_generation"] == 1
    assert (await held(life))[id_] == before
    assert await found(life) == {id_}
    assert life.parser.calls == parsed


@pytest.mark.parametrize("rechunk", [False, True])
@pytest.mark.parametrize("steps", range(5))
async def test_uploads_deletions_and_new_parses_at_any_point_are_as_if_nothing_was(
    life: Life, rechunk: bool, steps: int
) -> None:
    for number in range(3):
        await life.upload(f"{number}\n\n{TEXT}")
    await life.settle()
    await start(life, rechunk=rechunk)
    builder = rebuilder(life)
    for _ in range(steps):
        await builder.step()
        assert await found(life) == set(life.ids)
    deleted, anew, _ = life.ids
    await life.ask("delete", deleted)
    await life.upload(f"late\n\n{TEXT}")
    await life.ask("reparse", anew)
    for _ in range(3):
        await life.deliver_pending(0)
        await builder.step()
    await finish(life)
    alive = await rows(life)
    assert set(alive) == set(life.ids) - {deleted}
    counts = {id_: row["counts"]["chunks"] for id_, row in alive.items()}
    assert await held(life) == {id_: (counts.get(id_, 0),) * 2 for id_ in life.ids}
    assert await found(life) == set(alive)


async def test_no_crash_at_any_effect_loses_or_doubles_anything(life: Life) -> None:
    """The builder dies at each of its effects in turn, and another goes on."""
    from tests.document_life import CrashError

    for number in range(3):
        await life.upload(f"{number}\n\n{TEXT}")
    await life.settle()
    for rechunk in (False, True):
        await start(life, rechunk=rechunk)
        for at in range(200):
            died = False

            async def crash() -> None:
                nonlocal died
                died = True
                raise CrashError

            life.effects.interrupt(at % 9, crash)
            with contextlib.suppress(CrashError):
                await rebuilder(life).step()
            life.effects.interrupt(0, None)
            if not died:
                await life.settle()
            if await state(life) == "done":
                break
        await finish(life) if await state(life) != "done" else None
        alive = await rows(life)
        counts = {id_: row["counts"]["chunks"] for id_, row in alive.items()}
        assert await held(life) == {id_: (count, count) for id_, count in counts.items()}
        assert await found(life) == set(life.ids)
    async with life.db.reading() as sql:
        assert await index_builds.over(sql) != []
    assert ACTIVE.vector_collection not in life.vectors.rows
