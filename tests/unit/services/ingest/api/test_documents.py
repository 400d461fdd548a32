"""Document routes: what clients see and what their requests set off."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute, APIRouter
from httpx_sse import ServerSentEvent, aconnect_sse

from libs.contracts import DocumentControl, DocumentDeleted, DocumentParsed, DocumentUploaded
from libs.documents.likeness import likeness_of
from libs.documents.model import Chunk
from libs.storage.sql import alike, documents
from libs.storage.sql.tables import chunks
from services.ingest.api import progress
from tests.unit.services.ingest.api.conftest import World, assert_problem
from tests.waiting import until

URL = "/v1/documents"


async def test_the_list_pages_through_everything_once(world: World) -> None:
    ids = [(await world.upload(f"text {n}".encode()))["id"] for n in range(7)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await world.client.get(URL, params={"limit": "3", **cursor})).json()
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert seen == ids[::-1]


async def test_the_list_filters(world: World) -> None:
    first = await world.upload(b"1", domain="hr")
    second = await world.upload(b"2", domain="law")
    await world.fail(second["id"])

    async def ids(**params: str) -> list[str]:
        page = (await world.client.get(URL, params=params)).json()
        return [item["id"] for item in page["items"]]

    assert await ids(domain="hr") == [first["id"]]
    assert await ids(state="failed") == [second["id"]]
    assert await ids(state="failed", domain="hr") == []


async def test_documents_that_say_the_same_are_marked_where_they_are_shown(world: World) -> None:
    text = " ".join(f"Rule {n} grants {n * 7} euros." for n in range(60))
    texts = {"a.txt": text, "a.docx": text.upper(), "b.txt": f"{text} From May on.", "c.txt": "x"}
    ids = {}
    for name, said in texts.items():
        ids[name] = (await world.upload(said.encode(), name))["id"]
        await world.index(ids[name])
        async with world.db.work() as sql:
            await alike.put(sql, "acme", ids[name], 1, likeness_of([said]))
    shown = (await world.client.get(f"{URL}/{ids['a.txt']}")).json()
    assert shown["same_text_as"] == [ids["a.docx"]]
    (near,) = shown["near_duplicates"]
    assert (near["id"], near["name"]) == (ids["b.txt"], "b.txt")
    listed = {item["id"]: item for item in (await world.client.get(URL)).json()["items"]}
    assert listed[ids["a.txt"]]["near_duplicates"] == [near]
    assert len(listed[ids["b.txt"]]["near_duplicates"]) == 2
    assert listed[ids["c.txt"]]["same_text_as"] == listed[ids["c.txt"]]["near_duplicates"] == []


@pytest.mark.parametrize(
    "params", [{"cursor": "x"}, {"limit": "0"}, {"limit": "9999"}, {"state": "deleted"}]
)
async def test_bad_list_requests_are_refused(world: World, params: dict[str, str]) -> None:
    assert (await world.client.get(URL, params=params)).status_code == 422


async def test_a_failure_is_named(world: World) -> None:
    body = await world.upload()
    await world.fail(body["id"])
    view = (await world.client.get(f"{URL}/{body['id']}")).json()
    assert (view["state"], view["stage"], view["reason"]) == ("failed", "parse", "corrupt")
    assert view["timeline"][-1]["data"] == {"stage": "parse", "reason": "corrupt", "detail": "bad"}


async def test_delete_hides_at_once_and_may_be_repeated(world: World) -> None:
    body = await world.upload()
    one = f"{URL}/{body['id']}"
    assert (await world.client.delete(one)).status_code == 204
    assert (await world.client.delete(one)).status_code == 204
    for path in ("", "/text", "/file", "/blocks", "/chunks", "/plan", "/events"):
        assert_problem(await world.client.get(one + path), 404, "not-found")
    assert (await world.client.get(URL)).json()["items"] == []
    assert (await world.events())[1:] == [
        DocumentDeleted("acme", body["id"]),
        DocumentControl("acme", body["id"], "cancel"),
    ]
    async with world.db.work() as sql:
        await documents.purge(sql, "acme", body["id"])
    assert_problem(await world.client.delete(one), 404, "not-found")


async def test_cancel_stops_a_running_document_only(world: World) -> None:
    body = await world.upload()
    for _ in range(2):
        response = await world.client.post(f"{URL}/{body['id']}/cancel")
        assert response.json()["state"] == "cancelled"
    assert (await world.events())[1:] == [DocumentControl("acme", body["id"], "cancel")]
    other = await world.upload(b"other")
    await world.index(other["id"])
    assert_problem(await world.client.post(f"{URL}/{other['id']}/cancel"), 409, "conflict")


async def test_reparse_keeps_the_old_generation_until_the_new_one_is_whole(world: World) -> None:
    body = await world.upload()
    await world.index(body["id"])
    response = await world.client.post(f"{URL}/{body['id']}/reparse")
    assert response.status_code == 202
    assert (response.json()["generation"], response.json()["state"]) == (2, "uploaded")
    view = (await world.client.get(f"{URL}/{body['id']}")).json()
    assert view["active_generation"] == 1
    assert (await world.client.get(f"{URL}/{body['id']}/text")).text == "héllo 🍜"
    uploads = [event for event in await world.events() if isinstance(event, DocumentUploaded)]
    assert [event.generation for event in uploads] == [1, 2]


async def test_text_is_what_the_parser_made(world: World) -> None:
    body = await world.upload()
    one = f"{URL}/{body['id']}"
    assert_problem(await world.client.get(f"{one}/text"), 409, "conflict")
    await world.parse(body["id"])
    response = await world.client.get(f"{one}/text")
    assert response.text == "héllo 🍜"
    assert response.headers["content-type"] == "text/plain; charset=utf-8"


async def test_the_original_comes_back_and_cannot_run(world: World) -> None:
    data = b"<script>alert(1)</script>" * 50
    body = await world.upload(data, '𠮷"; x="页.html')
    response = await world.client.get(f"{URL}/{body['id']}/file")
    assert response.content == data
    assert response.headers["content-length"] == str(len(data))
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]
    assert response.headers["content-disposition"].startswith(
        'attachment; filename="__; x=__.html"'
    )


async def test_an_original_with_a_link_is_downloaded_there_by_its_own_tenant_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, str]] = []

    async def link(key: str, disposition: str, media_type: str) -> str:
        asked.append((key, disposition, media_type))
        return "https://files.example.com/signed"

    body = await world.upload(b"data", "合同.pdf")
    monkeypatch.setattr(world.objects, "link", link)
    response = await world.client.get(f"{URL}/{body['id']}/file")
    assert response.status_code == 307
    assert response.headers["location"] == "https://files.example.com/signed"
    assert response.headers["cache-control"] == "no-store"
    assert asked[0][0].endswith(f"{body['id']}/original")
    assert asked[0][1].startswith("attachment; ")
    assert_problem(await world.client.get(f"{URL}/{'0' * 32}/file"), 404, "not-found")
    world.objects.objects.clear()
    assert_problem(await world.client.get(f"{URL}/{body['id']}/file"), 404, "not-found")


async def test_a_lost_original_is_404_not_a_broken_stream(world: World) -> None:
    body = await world.upload()
    world.objects.objects.clear()
    assert_problem(await world.client.get(f"{URL}/{body['id']}/file"), 404, "not-found")


async def add_chunks(world: World, document_id: str, count: int) -> None:
    made = [Chunk(f"{document_id}.1.p0", 0, "all", 0, 3, 1, ("A",), None)]
    made += [
        Chunk(
            f"{document_id}.1.c{n}",
            n,
            f"t{n}",
            n,
            n + 1,
            None,
            ("A", "B"),
            made[0].chunk_id,
            f"L{n}",
        )
        for n in range(count)
    ]
    async with world.db.work() as sql:
        for chunk in made:
            await sql.execute(
                chunks.insert().values(
                    id=chunk.chunk_id, tenant="acme", document_id=document_id, generation=1,
                    ordinal=chunk.ordinal, parent_id=chunk.parent_id, text=chunk.text,
                    start=chunk.start, end=chunk.end, page=chunk.page,
                    heading_path=list(chunk.heading_path), lead=chunk.lead,
                )
            )  # fmt: skip


async def test_chunks_come_in_pages(world: World) -> None:
    body = await world.upload()
    await add_chunks(world, body["id"], 5)
    one = f"{URL}/{body['id']}/chunks"
    seen: list[tuple[str, str]] = []
    after: dict[str, Any] = {}
    while True:
        page = (await world.client.get(one, params={"limit": 2, **after})).json()
        seen += [(item["text"], item["lead"]) for item in page["items"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert seen == [(f"t{n}", f"L{n}") for n in range(5)]
    parents = (await world.client.get(one, params={"parents": True})).json()["items"]
    assert [item["text"] for item in parents] == ["all"]


async def test_a_new_plan_cuts_the_stored_parse_anew(world: World) -> None:
    body = await world.upload()
    await world.index(body["id"])
    response = await world.client.put(f"{URL}/{body['id']}/plan", json={"child_max_chars": 200})
    assert response.status_code == 202
    assert response.json() == {
        "state": "parsed",
        "generation": 2,
        "requested": {"child_max_chars": 200},
        "used": None,
        "recommended": None,
        "profile": None,
    }
    prefix = f"acme/{body['id']}/2"
    assert world.objects.objects[f"{prefix}/text.txt"] == "héllo 🍜".encode()
    assert (await world.events())[-1] == DocumentParsed(
        "acme", body["id"], 2, f"{prefix}/document.json", f"{prefix}/text.txt", 7, "normal"
    )
    view = (await world.client.get(f"{URL}/{body['id']}")).json()
    assert view["counts"] == {"pages": 1, "chars": 7}


async def test_a_plan_before_the_parse_waits_for_it(world: World) -> None:
    body = await world.upload()
    response = await world.client.put(f"{URL}/{body['id']}/plan", json={"child_max_chars": 200})
    assert response.json()["generation"] == 1
    assert len(await world.events()) == 1


async def test_a_plan_for_a_document_without_a_parse_starts_from_the_file(world: World) -> None:
    body = await world.upload()
    await world.fail(body["id"])
    response = await world.client.put(f"{URL}/{body['id']}/plan", json={})
    assert (response.json()["state"], response.json()["generation"]) == ("uploaded", 2)
    assert (await world.events())[-1].generation == 2


@pytest.mark.parametrize(
    "plan", ['{"strategies": []}', '{"child_max_chars": 1}', '{"size": 1}', "[]", "{"]
)
async def test_bad_plans_are_refused(world: World, plan: str) -> None:
    body = await world.upload()
    headers = {"Content-Type": "application/json"}
    response = await world.client.put(f"{URL}/{body['id']}/plan", content=plan, headers=headers)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


async def read_events(world: World, document_id: str, last: str = "") -> list[ServerSentEvent]:
    headers = {"Last-Event-ID": last} if last else {}
    async with aconnect_sse(
        world.client, "GET", f"{URL}/{document_id}/events", headers=headers
    ) as source:
        assert source.response.headers["x-accel-buffering"] == "no"
        return [event async for event in source.aiter_sse()]


async def test_progress_streams_until_the_end_and_resumes(world: World) -> None:
    body = await world.upload()
    reading = asyncio.create_task(read_events(world, body["id"]))
    await asyncio.sleep(0)
    await world.index(body["id"])
    events = await asyncio.wait_for(reading, 60)
    assert [(event.id, event.event) for event in events] == [
        ("1", "uploaded"),
        ("2", "parsed"),
        ("3", "chunked"),
        ("4", "indexed"),
    ]
    assert json.loads(events[1].data)["data"] == {"counts": {"pages": 1, "chars": 7}}
    assert [event.id for event in await read_events(world, body["id"], "2")] == ["3", "4"]
    ended = await world.client.get(f"{URL}/{body['id']}/events", headers={"Last-Event-ID": "4"})
    assert ended.status_code == 204
    bad = await world.client.get(f"{URL}/{body['id']}/events", headers={"Last-Event-ID": "x"})
    assert_problem(bad, 422, "bad-last-event-id")


async def test_progress_of_a_deleted_document_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = await world.upload()
    looks, news = 0, progress.news

    async def counted(*of: Any) -> Any:
        nonlocal looks
        found = await news(*of)
        looks += 1
        return found

    monkeypatch.setattr(progress, "news", counted)
    reading = asyncio.create_task(read_events(world, body["id"]))
    # The route's own and the stream's first, as a deleted document has none.
    await until(lambda: looks >= 2)
    async with world.db.work() as sql:
        await documents.tombstone(sql, "acme", body["id"])
        await documents.purge(sql, "acme", body["id"])
    events = await asyncio.wait_for(reading, 60)
    assert [event.event for event in events] == ["uploaded", "deleted"]


def document_routes(world: World) -> list[tuple[str, str]]:
    return [
        (method, route.path)
        for included in world.app.routes
        for route in getattr(included, "original_router", APIRouter()).routes
        if isinstance(route, APIRoute) and route.path.startswith("/v1/")
        for method in route.methods or ()
    ]


async def call(
    world: World, method: str, path: str, document_id: str, headers: dict[str, str]
) -> httpx.Response:
    takes_plan = path.endswith(("/plan", "/plan/preview")) and method != "GET"
    kwargs: dict[str, Any] = {"json": {}} if takes_plan else {}
    url = path.replace("{document_id}", document_id)
    return await world.client.request(method, url, headers=headers, **kwargs)


async def test_every_route_confines_its_tenant(world: World) -> None:
    body = await world.upload()
    await world.index(body["id"])
    before = (await world.client.get(f"{URL}/{body['id']}")).json()
    other = await world.key("other", "admin")
    routes = document_routes(world)
    assert len(routes) >= 12
    for method, path in routes:
        if "{document_id}" in path:
            foreign = await call(world, method, path, body["id"], other)
            unknown = await call(world, method, path, "0" * 32, other)
            assert_problem(foreign, 404, "not-found")
            assert foreign.text.replace(body["id"], "0" * 32) == unknown.text
    assert (await world.client.get(URL, headers=other)).json()["items"] == []
    uploaded = await world.client.post(URL, files={"file": ("a.txt", b"hello")}, headers=other)
    assert uploaded.status_code == 202
    assert (await world.client.get(f"{URL}/{body['id']}")).json() == before


async def test_every_route_needs_a_key_and_changes_need_a_member(world: World) -> None:
    body = await world.upload()
    reader = await world.key(role="reader")
    for method, path in document_routes(world):
        nobody = await call(world, method, path, body["id"], {"X-API-Key": "wrong"})
        assert_problem(nobody, 401, "unauthenticated")
        if method != "GET":
            refused = await call(world, method, path, body["id"], reader)
            assert_problem(refused, 403, "forbidden")
    assert (await world.client.get(f"{URL}/{body['id']}", headers=reader)).status_code == 200


async def test_every_status_is_documented(world: World) -> None:
    paths = (await world.client.get("/openapi.json")).json()["paths"]
    for path, operations in paths.items():
        if path.startswith("/v1/"):
            for operation in operations.values():
                assert {"401", "403", "500", "503"} <= set(operation["responses"])
                if "{document_id}" in path:
                    assert "404" in operation["responses"]


async def fail_at(world: World, document_id: str, stage: str, reason: str = "corrupt") -> None:
    async with world.db.work() as sql:
        of = ("acme", document_id, 1)
        assert await documents.fail(sql, *of, stage=stage, reason=reason, detail="bad")


async def test_resume_goes_on_where_the_document_failed(world: World) -> None:
    body = await world.upload(priority="urgent")
    await world.parse(body["id"])
    await fail_at(world, body["id"], "chunk")
    response = await world.client.post(f"{URL}/{body['id']}/resume")
    assert response.status_code == 202
    assert (response.json()["state"], response.json()["generation"]) == ("parsed", 1)
    view = (await world.client.get(f"{URL}/{body['id']}")).json()
    assert (view["stage"], view["reason"], view["detail"]) == (None, None, None)
    assert view["timeline"][-1]["data"] == {"why": "resumed"}
    assert [type(event).__name__ for event in await world.events()] == [
        "DocumentUploaded",
        "DocumentFailed",
        "DocumentParsed",
    ]


async def test_resume_parses_anew_when_the_stored_parse_is_gone(world: World) -> None:
    body = await world.upload()
    await world.parse(body["id"])
    await fail_at(world, body["id"], "chunk")
    del world.objects.objects[f"acme/{body['id']}/1/text.txt"]
    response = await world.client.post(f"{URL}/{body['id']}/resume")
    assert (response.json()["state"], response.json()["generation"]) == ("uploaded", 2)


async def test_there_is_nothing_to_resume_of_what_runs_or_is_done(world: World) -> None:
    body = await world.upload()
    one = f"{URL}/{body['id']}"
    running = await world.client.post(f"{one}/resume")
    assert_problem(running, 409, "conflict")
    assert running.json()["detail"] == (
        "The document is already at work: there is nothing to resume."
    )
    await world.index(body["id"])
    done = await world.client.post(f"{one}/resume")
    assert_problem(done, 409, "conflict")
    assert done.json()["detail"] == "The document is indexed: there is nothing to resume."
    assert_problem(await world.client.post(f"{URL}/{'0' * 32}/resume"), 404, "not-found")
