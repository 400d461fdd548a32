"""The documents repository on SQLite: legal steps happen once, everything else is dropped."""

from typing import Any

import pytest
from sqlalchemy import select

from libs.contracts import (
    DocumentControl,
    DocumentDeleted,
    DocumentFailed,
    DocumentUploaded,
)
from libs.kernel import ConflictError, NotFoundError, new_id
from libs.storage.sql import Database
from libs.storage.sql import documents as repo
from libs.storage.sql.idempotency import ReusedKeyError
from libs.storage.sql.tables import outbox
from libs.storage.sql.uploads import Outcome, StoredFile, take_in
from tests.outbox import announced

TENANT = "acme"


def stored(sha256: str = "a" * 64, **changes: Any) -> StoredFile:
    fields: dict[str, Any] = {
        "document_id": new_id(),
        "name": "report.pdf",
        "media_type": "application/pdf",
        "size_bytes": 5,
        "sha256": sha256,
    }
    return StoredFile(**(fields | changes))


async def upload(db: Database, **changes: Any) -> str:
    async with db.work() as sql:
        row, _ = await take_in(sql, TENANT, stored(**changes))
    return str(row["id"])


async def state_of(db: Database, document_id: str) -> tuple[str, int, int | None]:
    async with db.reading() as sql:
        row = await repo.find(sql, TENANT, document_id)
    assert row is not None
    return row["state"], row["generation"], row["active_generation"]


async def step(db: Database, document_id: str, generation: int, expect: str, to: str) -> bool:
    async with db.work() as sql:
        return await repo.advance(sql, TENANT, document_id, generation, expect={expect}, to=to)


async def index(db: Database, document_id: str, generation: int) -> None:
    assert await step(db, document_id, generation, "uploaded", "parsed")
    assert await step(db, document_id, generation, "parsed", "chunked")
    async with db.work() as sql:
        assert await repo.activate(sql, TENANT, document_id, generation, {"chunks": 3})


async def test_the_whole_way_is_in_the_timeline(db: Database) -> None:
    document_id = await upload(db)
    await index(db, document_id, 1)
    assert await state_of(db, document_id) == ("indexed", 1, 1)
    async with db.reading() as sql:
        rows = await repo.timeline(sql, TENANT, document_id)
        assert [
            row["seq"] for row in await repo.timeline(sql, TENANT, document_id, after_seq=2)
        ] == [
            3,
            4,
        ]
    assert [(row["seq"], row["stage"]) for row in rows] == [
        (1, "uploaded"),
        (2, "parsed"),
        (3, "chunked"),
        (4, "indexed"),
    ]


async def test_a_redelivered_step_changes_nothing(db: Database) -> None:
    document_id = await upload(db)
    assert await step(db, document_id, 1, "uploaded", "parsed")
    assert not await step(db, document_id, 1, "uploaded", "parsed")
    assert not await step(db, document_id, 2, "parsed", "chunked")
    assert await state_of(db, document_id) == ("parsed", 1, None)


async def test_an_illegal_step_is_a_bug(db: Database) -> None:
    document_id = await upload(db)
    with pytest.raises(ValueError, match="never goes"):
        await step(db, document_id, 1, "uploaded", "chunked")


async def test_counts_are_merged(db: Database) -> None:
    document_id = await upload(db)
    async with db.work() as sql:
        await repo.advance(
            sql, TENANT, document_id, 1, expect={"uploaded"}, to="parsed", counts={"pages": 2}
        )
        await repo.advance(
            sql, TENANT, document_id, 1, expect={"parsed"}, to="chunked", counts={"chunks": 7}
        )
    async with db.reading() as sql:
        assert (await repo.load(sql, TENANT, document_id))["counts"] == {"pages": 2, "chunks": 7}


async def test_a_failure_is_named_and_announced_once(db: Database) -> None:
    document_id = await upload(db)
    for expected in (True, False):
        async with db.work() as sql:
            failed = await repo.fail(
                sql, TENANT, document_id, 1, stage="parse", reason="encrypted", detail="locked"
            )
        assert failed is expected
    assert await state_of(db, document_id) == ("failed", 1, None)
    failures = [event for event in await announced(db) if isinstance(event, DocumentFailed)]
    assert failures == [DocumentFailed(TENANT, document_id, 1, "parse", "encrypted", "locked")]


async def test_a_repeat_that_fails_leaves_a_document_alone_that_has_gone_on(db: Database) -> None:
    document_id = await upload(db)
    assert await step(db, document_id, 1, "uploaded", "parsed")
    async with db.work() as sql:
        assert not await repo.fail(
            sql, TENANT, document_id, 1, stage="parse", reason="parse-timeout", detail=""
        )
    assert await state_of(db, document_id) == ("parsed", 1, None)


async def test_a_failed_new_generation_leaves_the_old_one_searchable(db: Database) -> None:
    document_id = await upload(db)
    await index(db, document_id, 1)
    async with db.work() as sql:
        await repo.start_generation(sql, TENANT, document_id)
    async with db.work() as sql:
        await repo.fail(sql, TENANT, document_id, 2, stage="parse", reason="corrupt", detail="")
    assert await state_of(db, document_id) == ("failed", 2, 1)


async def test_cancel_stops_what_runs_and_nothing_else(db: Database) -> None:
    document_id = await upload(db)
    for _ in range(2):
        async with db.work() as sql:
            assert (await repo.cancel(sql, TENANT, document_id))["state"] == "cancelled"
    assert [event for event in await announced(db) if isinstance(event, DocumentControl)] == [
        DocumentControl(TENANT, document_id, "cancel")
    ]
    other = await upload(db, sha256="b" * 64)
    await index(db, other, 1)
    with pytest.raises(ConflictError):
        async with db.work() as sql:
            await repo.cancel(sql, TENANT, other)


async def test_a_tombstone_hides_frees_the_content_and_ends_every_step(db: Database) -> None:
    document_id = await upload(db)
    for expected in (True, False):
        async with db.work() as sql:
            assert await repo.tombstone(sql, TENANT, document_id) is expected
    assert not await step(db, document_id, 1, "uploaded", "parsed")
    assert [event for event in await announced(db) if isinstance(event, DocumentDeleted)] == [
        DocumentDeleted(TENANT, document_id)
    ]
    async with db.reading() as sql:
        with pytest.raises(NotFoundError):
            await repo.load(sql, TENANT, document_id)
    assert await upload(db) != document_id
    async with db.work() as sql:
        assert await repo.purge(sql, TENANT, document_id)
        assert await repo.find(sql, TENANT, document_id) is None
        assert await repo.timeline(sql, TENANT, document_id) == []


async def test_the_same_content_is_the_same_document(db: Database) -> None:
    first = await upload(db)
    async with db.work() as sql:
        row, outcome = await take_in(sql, TENANT, stored())
    assert (row["id"], outcome) == (first, Outcome.KNOWN)
    async with db.work() as sql:
        _, outcome = await take_in(sql, "other", stored())
    assert outcome is Outcome.CREATED


async def test_uploading_failed_content_again_starts_a_generation(db: Database) -> None:
    document_id = await upload(db)
    async with db.work() as sql:
        await repo.fail(sql, TENANT, document_id, 1, stage="parse", reason="corrupt", detail="")
    async with db.work() as sql:
        row, outcome = await take_in(sql, TENANT, stored())
    assert (row["id"], row["generation"], row["reason"]) == (document_id, 2, None)
    assert outcome is Outcome.RESTARTED
    uploads = [event for event in await announced(db) if isinstance(event, DocumentUploaded)]
    assert [event.generation for event in uploads] == [1, 2]


async def test_an_idempotency_key_names_one_file(db: Database) -> None:
    async with db.work() as sql:
        first, _ = await take_in(sql, TENANT, stored(), idempotency_key="k")
    async with db.work() as sql:
        again, outcome = await take_in(sql, TENANT, stored(), idempotency_key="k")
    assert (again["id"], outcome) == (first["id"], Outcome.KNOWN)
    with pytest.raises(ReusedKeyError):
        async with db.work() as sql:
            await take_in(sql, TENANT, stored("b" * 64), idempotency_key="k")


async def test_another_tenant_sees_and_changes_nothing(db: Database) -> None:
    document_id = await upload(db)
    async with db.work() as sql:
        for call in (repo.load, repo.cancel, repo.start_generation, repo.tombstone):
            with pytest.raises(NotFoundError):
                await call(sql, "other", document_id)
        assert not await repo.advance(
            sql, "other", document_id, 1, expect={"uploaded"}, to="parsed"
        )
        assert not await repo.fail(
            sql, "other", document_id, 1, stage="parse", reason="x", detail=""
        )
        assert await repo.timeline(sql, "other", document_id) == []
    assert await state_of(db, document_id) == ("uploaded", 1, None)


async def test_urgent_documents_travel_on_their_own_lane(db: Database) -> None:
    await upload(db, priority="urgent")
    async with db.reading() as sql:
        topics = [row["topic"] for row in await sql.rows(select(outbox))]
    assert topics == ["documents.uploaded.v1.urgent"]


@pytest.mark.parametrize("state", ["uploaded", "parsed", "chunked"])
async def test_stale_events_of_an_old_generation_change_nothing(db: Database, state: str) -> None:
    document_id = await upload(db)
    async with db.work() as sql:
        await repo.start_generation(sql, TENANT, document_id)
    for expect, to in (("uploaded", "parsed"), ("parsed", "chunked")):
        if (await state_of(db, document_id))[0] != state:
            assert await step(db, document_id, 2, expect, to)
    before = await state_of(db, document_id)
    assert before == (state, 2, None)
    for expect, to in (("uploaded", "parsed"), ("parsed", "chunked")):
        assert not await step(db, document_id, 1, expect, to)
    async with db.work() as sql:
        assert not await repo.activate(sql, TENANT, document_id, 1, {})
        assert not await repo.fail(
            sql, TENANT, document_id, 1, stage="parse", reason="corrupt", detail=""
        )
    assert await state_of(db, document_id) == before


async def test_two_requests_cannot_start_from_the_same_generation(db: Database) -> None:
    document_id = await upload(db)
    async with db.work() as sql:
        await repo.start_generation(sql, TENANT, document_id, expect_generation=1)
    with pytest.raises(ConflictError):
        async with db.work() as sql:
            await repo.start_generation(sql, TENANT, document_id, expect_generation=1)
