"""A failed document goes on at the stage that failed; a cancelled one starts anew."""

from typing import Any

import pytest

from libs.contracts import DocumentChunked, DocumentParsed, DocumentUploaded
from libs.documents.model import Chunk
from libs.kernel import ConflictError, NotFoundError, chunk_id, new_id
from libs.storage.sql import Database, chunks, documents
from libs.storage.sql.uploads import StoredFile, take_in
from tests.outbox import emitted

TENANT = "acme"
STAGES = ("uploaded", "parsed", "chunked")
CHUNKS = 3


def cut(document_id: str, generation: int = 1) -> tuple[list[Chunk], list[Chunk]]:
    parent = Chunk(
        chunk_id(document_id, generation, 0, parent=True), 0, "abc", 0, 3, None, (), None
    )
    return [parent], [
        Chunk(chunk_id(document_id, generation, n), n, "a", n, n + 1, None, (), parent.chunk_id)
        for n in range(CHUNKS)
    ]


async def upload(db: Database, priority: str = "normal") -> str:
    file = StoredFile(new_id(), "a.txt", "text/plain", 1, new_id() * 2, priority=priority)
    async with db.work() as sql:
        row, _ = await take_in(sql, TENANT, file)
    return str(row["id"])


async def bring_to(db: Database, document_id: str, state: str) -> None:
    """The document as the stages leave it on its way to `state`."""
    of = (TENANT, document_id, 1)
    async with db.work() as sql:
        if state in STAGES[1:]:
            counts = {"pages": 2, "chars": 9}
            await documents.advance(sql, *of, expect={"uploaded"}, to="parsed", counts=counts)
        if state == "chunked":
            counts = {"parents": 1, "chunks": CHUNKS}
            await documents.advance(sql, *of, expect={"parsed"}, to="chunked", counts=counts)
            parents, children = cut(document_id)
            await chunks.add(sql, *of, [*parents, *children])


async def failed_at(db: Database, stage: str, reason: str = "internal-error", **of: Any) -> str:
    document_id = await upload(db, **of)
    await bring_to(db, document_id, {"parse": STAGES[0], "chunk": STAGES[1]}.get(stage, STAGES[2]))
    async with db.work() as sql:
        assert await documents.fail(
            sql, TENANT, document_id, 1, stage=stage, reason=reason, detail="why"
        )
    return document_id


async def resume(db: Database, document_id: str, **how: Any) -> tuple[str, int]:
    async with db.work() as sql:
        row = await documents.resume(sql, TENANT, document_id, **how)
    assert (row["stage"], row["reason"], row["detail"]) == (None, None, None)
    return row["state"], row["generation"]


@pytest.mark.parametrize(
    ("stage", "state", "event"),
    [
        ("parse", "uploaded", DocumentUploaded),
        ("chunk", "parsed", DocumentParsed),
        ("index", "chunked", DocumentChunked),
    ],
)
async def test_a_resumed_document_repeats_the_failed_stage_alone(
    db: Database, stage: str, state: str, event: type
) -> None:
    document_id = await failed_at(db, stage, priority="urgent")
    assert await resume(db, document_id) == (state, 1)
    topic, last = (await emitted(db))[-1]
    assert (type(last), last.generation, topic.endswith(".urgent")) == (event, 1, True)
    async with db.reading() as sql:
        entry = (await documents.timeline(sql, TENANT, document_id))[-1]
    assert (entry["stage"], entry["data"]) == (state, {"why": "resumed"})


async def test_a_chunk_set_that_is_not_whole_is_cut_again(db: Database) -> None:
    document_id = await failed_at(db, "index")
    _, (child, *_) = cut(document_id)
    async with db.work() as sql:
        await chunks.clear(sql, TENANT, document_id, 1)
        await chunks.add(sql, TENANT, document_id, 1, [child])
    assert await resume(db, document_id) == ("parsed", 1)
    async with db.reading() as sql:
        row = await documents.load(sql, TENANT, document_id)
    assert row["counts"] == {"pages": 2, "chars": 9}


@pytest.mark.parametrize(("reason", "stored"), [("missing-parse", True), ("internal-error", False)])
async def test_a_document_without_its_parse_is_parsed_anew(
    db: Database, reason: str, stored: bool
) -> None:
    document_id = await failed_at(db, "chunk", reason)
    assert await resume(db, document_id, parse_is_stored=stored) == ("uploaded", 2)


@pytest.mark.parametrize("state", STAGES)
async def test_a_cancelled_document_is_resumed_as_a_new_generation(
    db: Database, state: str
) -> None:
    document_id = await upload(db)
    await bring_to(db, document_id, state)
    async with db.work() as sql:
        await documents.cancel(sql, TENANT, document_id)
    assert await resume(db, document_id) == ("uploaded", 2)
    async with db.reading() as sql:
        assert await chunks.count(sql, TENANT, document_id, 1) == 0


async def test_a_second_resume_finds_nothing_to_resume(db: Database) -> None:
    document_id = await failed_at(db, "index")
    await resume(db, document_id)
    sent = await emitted(db)
    with pytest.raises(ConflictError, match="already at work"):
        await resume(db, document_id)
    assert await emitted(db) == sent


async def test_a_deleted_document_cannot_be_resumed(db: Database) -> None:
    document_id = await failed_at(db, "index")
    async with db.work() as sql:
        await documents.tombstone(sql, TENANT, document_id)
    with pytest.raises(NotFoundError):
        await resume(db, document_id)


async def test_a_resumed_document_can_fail_again_and_forgets_the_first_reason(db: Database) -> None:
    document_id = await failed_at(db, "index", "first")
    await resume(db, document_id)
    async with db.work() as sql:
        await documents.fail(sql, TENANT, document_id, 1, stage="index", reason="second", detail="")
        row = await documents.load(sql, TENANT, document_id)
    assert (row["state"], row["reason"]) == ("failed", "second")


async def test_a_failed_chunk_stage_leaves_no_chunks(db: Database) -> None:
    document_id = await upload(db)
    await bring_to(db, document_id, "parsed")
    async with db.work() as sql:
        await chunks.add(sql, TENANT, document_id, 1, cut(document_id)[1])
        await documents.fail(
            sql, TENANT, document_id, 1, stage="chunk", reason="internal-error", detail=""
        )
        assert await chunks.count(sql, TENANT, document_id, 1) == 0


async def test_a_new_generation_drops_the_chunks_that_search_does_not_show(db: Database) -> None:
    document_id = await upload(db)
    await bring_to(db, document_id, "chunked")
    async with db.work() as sql:
        await documents.activate(sql, TENANT, document_id, 1)
        await documents.start_generation(sql, TENANT, document_id)
        await chunks.add(sql, TENANT, document_id, 2, cut(document_id, 2)[1])
        await documents.start_generation(sql, TENANT, document_id)
        kept = [await chunks.count(sql, TENANT, document_id, n) for n in (1, 2)]
    assert kept == [CHUNKS + 1, 0]
