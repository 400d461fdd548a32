"""Dead letters: what they hold, and what sending one again does to its work."""

from typing import Any

import pytest
from sqlalchemy import insert, select, update

from libs.contracts import DocumentChunked, Event, to_record
from libs.contracts.events import TurnRequested
from libs.kernel import new_id, now_us
from libs.storage.sql import turns
from libs.storage.sql.tables import dead_letters, documents, outbox
from services.gateway.routes import admin_dlq
from tests.library import Library
from tests.unit.services.gateway.conftest import Stage


async def letter(
    stage: Stage,
    event: Event,
    *,
    group: str = "indexer",
    reason: str = "internal-error",
    tenant: str = "acme",
) -> str:
    record, letter_id = to_record(event), new_id()
    async with stage.gateway.db.work() as sql:
        await sql.execute(
            insert(dead_letters).values(
                id=letter_id,
                tenant=tenant,
                topic=record.topic,
                group_id=group,
                partition=0,
                offset=1,
                key=record.key,
                value=record.value,
                headers=record.headers,
                reason=reason,
                detail="KeyError: 'x'",
                attempts=3,
                created_at=now_us(),
            )
        )
    return letter_id


async def document(platform: Stage, state: str, **values: object) -> DocumentChunked:
    library = Library(platform.gateway.db)
    await library.record("d1", tenant="acme", state=state, active=None)
    await library.write_chunks("d1", "one\n\ntwo", tenant="acme")
    await library.change("d1", counts={"parents": 2, "chunks": 2}, **values)
    return DocumentChunked("acme", "d1", 1, 2, 2, "normal")


async def sent(stage: Stage) -> list[str]:
    async with stage.gateway.db.reading() as sql:
        return [row["topic"] for row in await sql.rows(select(outbox.c.topic))]


async def state_of(stage: Stage) -> str:
    async with stage.gateway.db.reading() as sql:
        return str(await sql.scalar(select(documents.c.state).where(documents.c.id == "d1")))


async def redriven(stage: Stage, letter_id: str) -> tuple[int, dict[str, Any]]:
    async with await stage.admin() as client:
        answer = await client.post(f"/v1/admin/dlq/{letter_id}/redrive")
    return answer.status_code, answer.json()


async def test_a_letter_of_a_failed_document_resumes_it_at_the_failed_stage(stage: Stage) -> None:
    event = await document(stage, "failed", stage="index", reason="internal-error")
    found = await letter(stage, event)
    assert await redriven(stage, found) == (202, {"id": found, "how": "resumed"})
    assert await state_of(stage) == "chunked"
    assert await sent(stage) == ["documents.chunked.v1"]
    status, body = await redriven(stage, found)
    assert (status, "before" in body["detail"]) == (409, True)


async def test_a_letter_whose_work_is_open_goes_back_to_its_group(stage: Stage) -> None:
    found = await letter(stage, await document(stage, "chunked"))
    assert await redriven(stage, found) == (202, {"id": found, "how": "sent-again"})
    assert await sent(stage) == ["documents.chunked.v1.indexer.retry"]


async def test_a_letter_of_an_older_generation_or_a_deleted_document_is_over(
    stage: Stage,
) -> None:
    event = await document(stage, "indexed", generation=2)
    found = await letter(stage, event)
    status, body = await redriven(stage, found)
    assert (status, "parsed anew" in body["detail"]) == (409, True)
    async with stage.gateway.db.work() as sql:
        await sql.execute(update(documents).values(state="deleted"))
    status, body = await redriven(stage, found)
    assert (status, "was deleted" in body["detail"]) == (409, True)
    assert await sent(stage) == []


async def test_a_turn_that_has_ended_must_be_asked_again(stage: Stage) -> None:
    turn_id = await stage.ask()
    async with stage.gateway.db.reading() as sql:
        turn = await turns.load_turn(sql, "acme", turn_id)
    event = TurnRequested("acme", turn["conversation_id"], turn_id, 3)
    found = await letter(stage, event, group="orchestrator")
    await stage.executor.end(turn_id)
    status, body = await redriven(stage, found)
    assert (status, "must ask again" in body["detail"]) == (409, True)


async def test_letters_are_listed_by_group_and_reason_and_shown_with_their_event(
    stage: Stage,
) -> None:
    event = await document(stage, "chunked")
    mine = await letter(stage, event)
    await letter(stage, event, reason="retries-exhausted")
    await letter(stage, event, group="chunker")
    async with await stage.admin() as client:
        wanted = {"group": "indexer", "reason": "internal-error"}
        listed = (await client.get("/v1/admin/dlq", params=wanted)).json()["items"]
        shown = (await client.get(f"/v1/admin/dlq/{mine}")).json()
        first = (await client.get("/v1/admin/dlq", params={"limit": 2})).json()
        rest = (await client.get("/v1/admin/dlq", params={"cursor": first["next"]})).json()
    assert [row["id"] for row in listed] == [mine]
    assert (shown["event"]["type"], shown["event"]["document_id"]) == ("DocumentChunked", "d1")
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (2, 1, None)


async def test_letters_in_bulk_are_redriven_or_refused_one_by_one(stage: Stage) -> None:
    event = await document(stage, "failed", stage="index", reason="internal-error")
    good = await letter(stage, event)
    old = await letter(stage, DocumentChunked("acme", "unknown", 1, 1, 1, "normal"))
    async with await stage.admin() as client:
        done = (await client.post("/v1/admin/dlq/redrive", json={"group": "indexer"})).json()
        assert done["done"] == [{"id": good, "how": "resumed"}]
        assert [refused["id"] for refused in done["refused"]] == [old]
        purged = (await client.post("/v1/admin/dlq/purge", json={"group": "indexer"})).json()
        assert purged["done"] == [{"id": old, "how": "purged"}]
        assert (await client.get("/v1/admin/dlq")).json()["items"] == []


async def test_letters_in_bulk_are_handled_page_by_page_past_those_that_are_refused(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_dlq, "BULK", 2)
    event = await document(stage, "failed", stage="index", reason="internal-error")
    good = await letter(stage, event)
    for _ in range(3):  # newer ones, that nobody can send again
        await letter(stage, DocumentChunked("acme", "unknown", 1, 1, 1, "normal"))
    async with await stage.admin() as client:
        first = (await client.post("/v1/admin/dlq/redrive", json={})).json()
        assert (first["done"], len(first["refused"])) == ([], 2)
        rest = {"cursor": first["next"]}
        second = (await client.post("/v1/admin/dlq/redrive", json=rest)).json()
    assert [done["id"] for done in second["done"]] == [good]
    assert (len(second["refused"]), second["next"]) == (1, None)


async def test_another_tenants_letters_are_not_there(stage: Stage) -> None:
    found = await letter(stage, await document(stage, "chunked"))
    async with await stage.admin("other") as client:
        assert (await client.get("/v1/admin/dlq")).json()["items"] == []
        assert (await client.get(f"/v1/admin/dlq/{found}")).status_code == 404
        assert (await client.post(f"/v1/admin/dlq/{found}/redrive")).status_code == 404
        assert (await client.delete(f"/v1/admin/dlq/{found}")).status_code == 404
        assert (await client.post("/v1/admin/dlq/purge", json={})).json()["done"] == []
    async with await stage.admin() as client:
        assert (await client.delete(f"/v1/admin/dlq/{found}")).status_code == 204
