"""What people rely on when they parse anew, delete, cancel and resume, come what may."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import RowMapping, func, insert, select

from libs.contracts import DocumentChunked, DocumentDeleted, Event, to_record
from libs.kernel import PermanentError
from libs.retrieval import Retriever
from libs.storage.keys import generation_prefix
from libs.storage.sql import chunks, documents
from libs.storage.sql.tables import chunks as chunk_rows
from libs.storage.sql.tables import dead_letters
from services.gateway.domain.standing import may_help
from services.gateway.redriving import redrive
from tests.document_life import TENANT, CrashError, Life
from tests.fakes_search import FakeEmbedder
from tests.library import ACTIVE

TEXT = "\n\n".join(f"paragraph {n} about travel expenses." for n in range(20))
EFFECTS = range(8)


async def indexed(life: Life) -> str:
    await life.upload(TEXT)
    await life.settle()
    return life.ids[-1]


async def row_of(life: Life, document_id: str) -> RowMapping | None:
    async with life.db.reading() as sql:
        return await documents.find(sql, TENANT, document_id)


async def held(life: Life, document_id: str) -> tuple[int, int, int, int]:
    """What the stores hold of a document: vectors, keywords, chunks, objects."""
    async with life.db.reading() as sql:
        mine = chunk_rows.c.document_id == document_id
        stored = await sql.scalar(select(func.count()).select_from(chunk_rows).where(mine))
    return (
        await life.vectors.count(ACTIVE.vector_collection, TENANT, document_id),
        await life.keywords.count(ACTIVE.keyword_index, TENANT, document_id),
        int(stored),
        len(await life.objects.keys(f"{TENANT}/{document_id}/")),
    )


async def found(life: Life) -> set[str]:
    """The documents that a search finds."""
    retriever = Retriever(life.db, FakeEmbedder(), life.vectors, life.keywords)
    return {hit.document_id for hit in await retriever.search(TENANT, "travel expenses")}


async def work_until(life: Life, kind: type) -> None:
    """Deliver events until one of this kind is next."""
    while not isinstance(life.pending[-1], kind):
        await life.deliver_pending(0)


async def test_parsing_anew_again_and_again_grows_nothing(life: Life) -> None:
    document_id = await indexed(life)
    before = await held(life, document_id)
    for _ in range(4):
        await life.ask("reparse", document_id)
        await life.settle()
        assert await held(life, document_id) == before
    row = await row_of(life, document_id)
    assert row is not None
    assert (row["state"], row["generation"], row["active_generation"]) == ("indexed", 5, 5)
    assert row["counts"]["chunks"] == before[0] == before[1]


@pytest.mark.parametrize("at", EFFECTS)
async def test_parsing_anew_during_any_step_of_the_former_run_grows_nothing(
    life: Life, at: int
) -> None:
    document_id = await indexed(life)
    before = await held(life, document_id)
    await life.ask("reparse", document_id)
    for _ in range(3):
        life.effects.interrupt(at, partial(life.ask, "reparse", document_id))
        await life.deliver_pending(0)
        life.effects.interrupt(0, None)
        assert await found(life) == {document_id}
    await life.settle()
    await life.sweep()
    assert await held(life, document_id) == before


@pytest.mark.parametrize("stage", [0, 1, 2])
async def test_a_failed_new_run_leaves_the_old_one_searchable_and_says_so(
    life: Life, stage: int
) -> None:
    document_id = await indexed(life)
    await life.ask("reparse", document_id)
    for _ in range(stage):
        await life.deliver_pending(0)
    life.effects.interrupt(0, partial(raise_, PermanentError("corrupt", "It is broken.")))
    await life.deliver_pending(0)
    row = await row_of(life, document_id)
    assert row is not None
    assert (row["state"], row["reason"], row["active_generation"]) == ("failed", "corrupt", 1)
    assert row["active_counts"]["chunks"] == (await held(life, document_id))[0]
    assert await found(life) == {document_id}
    await life.ask("resume", document_id)
    await life.settle()
    row = await row_of(life, document_id)
    assert row is not None
    assert (row["state"], row["reason"], row["active_generation"]) == ("indexed", None, 2)


async def test_only_the_failed_stage_is_repeated(life: Life) -> None:
    await life.upload(TEXT)
    await work_until(life, DocumentChunked)
    life.vectors.away = True
    await life.deliver_pending(0, give_up=True)
    row = await row_of(life, life.ids[0])
    assert row is not None
    assert (row["state"], row["stage"], row["reason"]) == ("failed", "index", "retries-exhausted")
    life.vectors.away = False
    await life.ask("resume", life.ids[0])
    await life.settle()
    row = await row_of(life, life.ids[0])
    assert row is not None
    assert (row["state"], row["generation"], life.parser.calls) == ("indexed", 1, 1)


async def test_a_letter_whose_chunks_and_parse_are_gone_ends_failed_and_then_parses_anew(
    life: Life,
) -> None:
    await life.upload(TEXT)
    (document_id,) = life.ids
    await work_until(life, DocumentChunked)
    letter = letter_of(life.pending[-1])
    life.vectors.away = True
    await life.deliver_pending(0, give_up=True)
    life.vectors.away = False
    async with life.db.work() as sql:
        await sql.execute(insert(dead_letters).values(**letter))
        await chunks.delete_document(sql, TENANT, document_id)
    await life.objects.delete_prefix(generation_prefix(TENANT, document_id, 1))
    async with life.db.work() as sql:
        assert await redrive(sql, TENANT, letter["id"]) == "resumed"
    await life.settle()
    row = await row_of(life, document_id)
    assert row is not None
    assert (row["state"], row["stage"], row["reason"]) == ("failed", "chunk", "missing-parse")
    assert may_help(row["stage"], row["reason"])
    await life.ask("resume", document_id)
    await life.settle()
    row = await row_of(life, document_id)
    assert row is not None
    assert (row["state"], row["generation"]) == ("indexed", 2)
    assert await found(life) == {document_id}


def letter_of(event: Event) -> dict[str, Any]:
    """The row that the indexer's group leaves of an event that it gave up."""
    record = to_record(event)
    return {
        "id": "letter",
        "tenant": TENANT,
        "topic": record.topic,
        "group_id": "indexer",
        "partition": 0,
        "offset": 0,
        "key": record.key,
        "value": record.value,
        "headers": record.headers,
        "reason": "retries-exhausted",
        "detail": "",
        "attempts": 20,
        "created_at": 0,
    }


async def test_a_deleted_document_is_not_found_before_any_store_was_told(life: Life) -> None:
    document_id = await indexed(life)
    await life.ask("delete", document_id)
    assert (await held(life, document_id))[0] > 0
    assert await found(life) == set()


@pytest.mark.parametrize("at", EFFECTS)
async def test_a_deletion_that_crashed_at_any_step_is_finished_later(life: Life, at: int) -> None:
    document_id = await indexed(life)
    await life.ask("delete", document_id)
    life.effects.interrupt(at, partial(raise_, CrashError()))
    await work_until(life, DocumentDeleted)
    await life.deliver_pending(0)
    life.effects.interrupt(0, None)
    life.pending.clear()  # and the broker lost its log
    await life.settle()
    assert await held(life, document_id) == (0, 0, 0, 0)
    assert await row_of(life, document_id) is None


@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize("at", EFFECTS)
async def test_a_deletion_during_any_step_leaves_nothing(life: Life, stage: int, at: int) -> None:
    await life.upload(TEXT)
    (document_id,) = life.ids

    async def delete_to_the_end() -> None:
        await life.ask("delete", document_id)
        await life.deliver(DocumentDeleted(TENANT, document_id))

    for _ in range(stage):
        await life.deliver_pending(0)
    life.effects.interrupt(at, delete_to_the_end)
    await life.deliver_pending(0)
    life.effects.interrupt(0, None)
    await life.ask("delete", document_id)
    await life.settle()
    assert await held(life, document_id) == (0, 0, 0, 0)


@pytest.mark.parametrize("at", EFFECTS)
async def test_what_a_crashed_writer_left_of_a_deleted_document_is_swept(
    life: Life, at: int
) -> None:
    """Its message is lost too, so nobody comes back to take anything back."""
    await life.upload(TEXT)
    (document_id,) = life.ids
    await work_until(life, DocumentChunked)

    async def delete_to_the_end_and_crash() -> None:
        await life.ask("delete", document_id)
        await life.deliver(DocumentDeleted(TENANT, document_id))
        life.effects.interrupt(0, partial(raise_, CrashError()))

    life.effects.interrupt(at, delete_to_the_end_and_crash)
    await life.deliver_pending(0)
    life.effects.interrupt(0, None)
    await life.ask("delete", document_id)
    await life.settle()
    await life.sweep(failed_before_us=2**62)
    assert await held(life, document_id) == (0, 0, 0, 0)


async def test_deleted_content_may_come_back_at_once_as_another_document(life: Life) -> None:
    first = await indexed(life)
    await life.ask("delete", first)
    await life.upload(TEXT)  # before the deletion has reached any store
    second = life.ids[-1]
    assert second != first
    await life.settle()
    assert await found(life) == {second}
    assert await held(life, first) == (0, 0, 0, 0)
    assert (await held(life, second))[0] > 0
    for event in list(life.history):  # and whatever comes again brings nothing back
        await life.deliver(event)
    await life.settle()
    assert await held(life, first) == (0, 0, 0, 0)
    assert await found(life) == {second}


async def test_a_cancelled_queue_costs_nothing_when_its_turn_comes(life: Life) -> None:
    for n in range(20):
        await life.upload(f"{n} {TEXT}")
    for document_id in life.ids:
        await life.ask("cancel", document_id)
    await life.settle()
    assert life.parser.calls == 0


async def test_a_store_that_is_away_delays_a_deletion_and_shows_nothing(life: Life) -> None:
    document_id = await indexed(life)
    await life.ask("delete", document_id)
    life.keywords.away = True
    assert not await life.deliver(DocumentDeleted(TENANT, document_id))
    life.keywords.away = False
    assert await found(life) == set()
    await life.settle()
    assert await held(life, document_id) == (0, 0, 0, 0)


async def raise_(error: BaseException) -> None:
    raise error
