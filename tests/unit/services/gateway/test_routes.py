"""Every route: what it answers, whom it refuses, and what bad input gets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from libs.contracts import TurnCompleted, TurnControl, TurnRequested, decode
from libs.kernel import ConflictError
from libs.retrieval import Query
from libs.storage.sql import Database, UnitOfWork, turns
from libs.storage.sql.document_filter import DocumentFilter
from libs.storage.sql.tables import outbox
from services.gateway.limits import RateLimit
from services.gateway.settings import GatewaySettings
from tests.unit.services.gateway.conftest import DONE, Stage

LONG = "长" * 1_001


async def emitted(stage: Stage) -> list[Any]:
    async with stage.gateway.db.reading() as sql:
        rows = await sql.rows(select(outbox.c.value).order_by(outbox.c.id))
    return [decode(row["value"]) for row in rows]


async def asked(stage: Stage) -> list[Any]:
    """The events once there are any."""
    for _ in range(100_000):
        if events := await emitted(stage):
            return events
    raise AssertionError("nothing was emitted")


async def test_a_question_is_stored_and_sent_to_this_replicas_partition(stage: Stage) -> None:
    async with stage.client() as client:
        created = await client.post("/v1/conversations", json={"memory": "none"})
        assert created.status_code == 201
        path = f"/v1/conversations/{created.json()['id']}/turns"
        asking = asyncio.create_task(client.post(path, json={"text": "  What?  "}))
        events = await asked(stage)
        assert [type(e) for e in events] == [TurnRequested]
        assert events[0].reply_partition == 3
        await stage.executor.end(events[0].turn_id, DONE)
        answer = (await asking).json()
        assert answer["state"] == "done"
        assert (answer["text"], answer["answer"]) == ("What?", DONE.answer)
        assert (answer["citations"], answer["declined"]) == ([{"n": 1}], False)
        shown = (await client.get(f"/v1/conversations/{created.json()['id']}")).json()
    assert (shown["memory"], shown["turns"]) == ("none", [answer])


async def test_a_json_client_is_told_where_a_slow_answer_will_be(stage: Stage) -> None:
    impatient = stage.gateway.settings.model_copy(update={"answer_timeout_s": 0.05})
    stage.gateway = replace(stage.gateway, settings=impatient)
    async with stage.client() as client:
        conversation_id = (await client.post("/v1/conversations")).json()["id"]
        path = f"/v1/conversations/{conversation_id}/turns"
        response = await client.post(path, json={"text": "What?"})
        assert response.status_code == 202
        later = await client.get(response.headers["location"])
    assert (later.json()["state"], later.json()["answer"]) == ("requested", None)


async def test_cancelling_what_nobody_runs_ends_it_at_once(stage: Stage) -> None:
    turn_id = await stage.ask()
    async with stage.client() as client:
        first = await client.delete(f"/v1/turns/{turn_id}")
        again = await client.delete(f"/v1/turns/{turn_id}")
        stream = await client.get(f"/v1/turns/{turn_id}/events")
    assert [(r.status_code, r.json()["state"]) for r in (first, again)] == [(202, "cancelled")] * 2
    assert stream.content.count(b"event: done") == 1
    assert [(r.type, p) for r, p in stage.announced] == [("done", 3)]
    kinds = [type(e) for e in await emitted(stage)]
    assert kinds == [TurnRequested, TurnCompleted, TurnControl]


async def test_cancelling_what_an_executor_runs_ends_it_though_that_one_is_frozen(
    stage: Stage,
) -> None:
    turn_id = await stage.ask()
    await stage.executor.say(turn_id, [("delta", {"text": "So far "})])
    async with stage.gateway.db.reading() as sql:
        stands_at = await turns.last_seq(sql, turn_id)
    async with stage.client() as client:
        ended = (await client.delete(f"/v1/turns/{turn_id}")).json()
    assert (ended["state"], ended["answer"]) == ("cancelled", "So far")
    assert [reply.type for reply, _ in stage.announced] == ["done"]
    async with stage.gateway.db.work() as sql:
        late = turns.append_events(sql, "acme", turn_id, [("delta", {})], after=stands_at)
        with pytest.raises(ConflictError):  # it wakes up
            await late


async def test_cancelling_is_tried_again_when_an_event_comes_in_between(stage: Stage) -> None:
    turn_id = await stage.ask()
    stage.gateway = replace(stage.gateway, db=ConflictingOnce(stage.gateway.db))
    async with stage.client() as client:
        assert (await client.delete(f"/v1/turns/{turn_id}")).json()["state"] == "cancelled"


class ConflictingOnce(Database):
    """Its first unit of work finds that somebody else was faster."""

    def __init__(self, db: Database) -> None:
        super().__init__(db.engine)
        self._conflicts = 1

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        async with super().work() as sql:
            yield sql
            if self._conflicts:
                self._conflicts -= 1
                raise ConflictError("an event came in between")


async def test_search_gives_the_callers_hits_in_the_promised_shape(stage: Stage) -> None:
    async with stage.client() as client:
        body = {"query": "gate", "top_k": 3, "domains": ["law"]}
        found = (await client.post("/v1/search", json=body)).json()
    assert stage.search.asked == [Query("acme", "gate", 3, ["law"], DocumentFilter([], []))]
    assert found["hits"] == [
        {
            "chunk_id": "d1.1.c0",
            "document_id": "d1",
            "document_name": "a.txt",
            "text": "a gate",
            "start": 0,
            "end": 6,
            "page": 1,
            "heading_path": ["Intro"],
            "scores": {
                "vector": 0.9,
                "keyword": None,
                "graph": None,
                "fused": 0.5,
                "rerank": None,
            },
            "duplicate_of": None,
            "neighbours": [],
            "explanation": None,
        }
    ]
    assert found["took_ms"] >= 0
    assert found["explanation"] is None


async def test_search_passes_on_filters_with_times_of_any_zone(stage: Stage) -> None:
    filters = {
        "tags": ["policy"],
        "document_ids": ["d1", "d2"],
        "created_after": "1970-01-01T09:00:01+08:00",
        "created_before": "9999-12-31T23:59:59.5-12:00",
    }
    async with stage.client() as client:
        body = {"query": "gate", "filters": filters, "neighbours": 2, "explain": True}
        assert (await client.post("/v1/search", json=body)).status_code == 200
    [query] = stage.search.asked
    assert query.filters == DocumentFilter(
        ["policy"], ["d1", "d2"], 3_601_000_000, 253_402_343_999_500_000
    )
    assert (query.neighbours, query.explain) == (2, True)


async def routes_of(stage: Stage) -> list[tuple[str, str, Any]]:
    """Every route that names something of the tenant `acme`."""
    turn_id = await stage.ask()
    async with stage.gateway.db.reading() as sql:
        conversation_id = (await turns.load_turn(sql, "acme", turn_id))["conversation_id"]
    return [
        ("GET", f"/v1/conversations/{conversation_id}", None),
        ("POST", f"/v1/conversations/{conversation_id}/turns", {"text": "What?"}),
        ("GET", f"/v1/turns/{turn_id}", None),
        ("GET", f"/v1/turns/{turn_id}/events", None),
        ("DELETE", f"/v1/turns/{turn_id}", None),
    ]


async def test_another_tenants_ids_are_unknown_ids(stage: Stage) -> None:
    async with stage.client("other") as client:
        for method, path, body in await routes_of(stage):
            foreign = await client.request(method, path, json=body)
            unknown = await client.request(method, _unknown(path), json=body)
            assert (foreign.status_code, unknown.status_code) == (404, 404), path
            assert foreign.headers["content-type"] == "application/problem+json"
            assert foreign.json()["type"] == unknown.json()["type"]
        assert (await client.post("/v1/search", json={"query": "gate"})).json()["hits"] == []
    assert [type(e) for e in await emitted(stage)] == [TurnRequested]


def _unknown(path: str) -> str:
    return "/".join("0" * 32 if len(part) == 32 else part for part in path.split("/"))


async def test_without_a_known_key_every_route_refuses(stage: Stage) -> None:
    routes = [
        *await routes_of(stage),
        ("POST", "/v1/conversations", {}),
        ("POST", "/v1/search", {"query": "x"}),
        ("GET", "/v1/documents", None),
        ("POST", "/v1/documents", None),
        ("GET", "/v1/documents/d1/text", None),
    ]
    cookie = {"Cookie": "sluice_key=wrong", "Sec-Fetch-Site": "same-origin"}
    for headers in ({}, {"Authorization": "Bearer slk_wrong"}, cookie):
        async with stage.client(None, **headers) as client:
            for method, path, body in routes:
                response = await client.request(method, path, json=body)
                assert response.status_code == 401, path
                assert response.json()["type"] == "urn:sluice:problem:unauthenticated"
    assert stage.search.asked == []


BAD = [
    ("POST", "/v1/conversations/{c}/turns", {"json": {"text": ""}}, 422),
    ("POST", "/v1/conversations/{c}/turns", {"json": {"text": " \n\t "}}, 422),
    ("POST", "/v1/conversations/{c}/turns", {"json": {}}, 422),
    ("POST", "/v1/conversations/{c}/turns", {"json": {"text": 7}}, 422),
    ("POST", "/v1/conversations/{c}/turns", {"json": {"text": LONG}}, 413),
    (
        "POST",
        "/v1/conversations/{c}/turns",
        {"content": b'{"text": "' + b"x" * 100_000 + b'"}'},
        413,
    ),
    ("POST", "/v1/conversations/{c}/turns", {"content": b"x" * 1_000_001}, 413),
    ("POST", "/v1/conversations/{c}/turns", {"content": b'{"text": '}, 422),
    ("POST", "/v1/conversations/{c}/turns", {"content": b'{"text": "\\ud800"}'}, 422),
    ("POST", "/v1/conversations/{c}/turns", {"content": b"\xff\xfe{"}, 422),
    ("POST", "/v1/conversations/{c}/turns", {"content": b""}, 422),
    ("POST", "/v1/conversations/{c}/turns", {"content": b"[" * 50_000}, 422),
    ("POST", "/v1/conversations", {"json": {"memory": "everything"}}, 422),
    ("POST", "/v1/conversations", {"json": {"agent": "a" * 65}}, 422),
    ("POST", "/v1/search", {"json": {"query": ""}}, 422),
    ("POST", "/v1/search", {"json": {"query": LONG}}, 413),
    ("POST", "/v1/search", {"json": {"query": "x", "top_k": 0}}, 422),
    ("POST", "/v1/search", {"json": {"query": "x", "top_k": 10**9}}, 422),
    ("POST", "/v1/search", {"json": {"query": "x", "domains": "law"}}, 422),
    ("POST", "/v1/search", {"json": {"query": "x", "neighbours": 4}}, 422),
    ("POST", "/v1/search", {"json": {"query": "x", "filters": {"document_id": ["d1"]}}}, 422),
    ("POST", "/v1/search", {"json": {"query": "x", "filters": {"tags": "law"}}}, 422),
    ("POST", "/v1/search", {"json": {"query": "x", "filters": {"created_after": 5}}}, 422),
    (
        "POST",
        "/v1/search",
        {"json": {"query": "x", "filters": {"created_before": "2026-01-31T08:00:00"}}},
        422,
    ),
    (
        "POST",
        "/v1/search",
        {
            "json": {
                "query": "x",
                "filters": {
                    "created_after": "2026-02-01T00:00:00Z",
                    "created_before": "2026-01-01T00:00:00Z",
                },
            }
        },
        422,
    ),
    ("POST", "/v1/search", {"json": {"query": "x", "limit": 3}}, 422),
    ("POST", "/v1/search", {"json": {"query": "x", "domains": ["a\x00b"]}}, 422),
    ("POST", "/v1/search", {"content": b'{"query": "x", "\\ud800": 1}'}, 422),
    ("POST", "/v1/conversations", {"json": {"agent": "a\nb"}}, 422),
    ("GET", "/v1/documents/%2e%2e/metrics", {}, 404),
    ("GET", "/v1/turns/{t}/events", {"headers": {"Last-Event-ID": "-1"}}, 422),
    ("GET", "/v1/turns/{t}/events", {"headers": {"Last-Event-ID": "abc"}}, 422),
    ("GET", "/v1/turns/{t}/events", {"headers": {"Last-Event-ID": "9" * 40}}, 422),
    ("GET", "/v1/turns/%00", {}, 404),
    ("GET", "/v1/nothing", {}, 404),
    ("PUT", "/v1/search", {}, 405),
]


@pytest.mark.parametrize(("method", "path", "kind", "status"), BAD)
async def test_bad_input_gets_a_problem_that_says_what_to_do(
    stage: Stage, method: str, path: str, kind: dict[str, Any], status: int
) -> None:
    turn_id = await stage.ask()
    async with stage.client() as client:
        conversation_id = (await client.post("/v1/conversations")).json()["id"]
        address = path.replace("{c}", conversation_id).replace("{t}", turn_id)
        sent = {**kind, "headers": {"Content-Type": "application/json", **kind.get("headers", {})}}
        response = await client.request(method, address, **sent)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:sluice:problem:")
    assert len(problem["detail"]) > 10


async def test_a_key_that_asks_too_often_is_told_when_to_ask_again(stage: Stage) -> None:
    impatient = stage.gateway.settings.model_copy(update={"answer_timeout_s": 0.01})
    stage.gateway = replace(stage.gateway, rate=RateLimit(2), settings=impatient)

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        conversation_id = (await client.post("/v1/conversations")).json()["id"]
        path = f"/v1/conversations/{conversation_id}/turns"
        return await client.post(path, json={"text": "What?"})

    async with stage.client() as client:
        codes = [(await ask(client)).status_code for _ in range(3)]
        last = await ask(client)
        searched = await client.post("/v1/search", json={"query": "x"})
    async with stage.client("other") as client:
        codes.append((await ask(client)).status_code)
    assert codes == [202, 202, 429, 202]
    assert last.json()["type"] == "urn:sluice:problem:rate-limited"
    assert 1 <= int(last.headers["retry-after"]) <= 30
    assert searched.status_code == 200  # questions are counted, nothing else


def test_questions_are_limited_unless_the_platform_is_local() -> None:
    assert GatewaySettings(local=False).turn_rate == 10
    assert GatewaySettings(local=True).turn_rate == 0
    assert GatewaySettings(local=True, turns_per_minute=3).turn_rate == 3


async def test_readiness_names_what_is_missing(stage: Stage) -> None:
    async with stage.client(None) as client:
        assert (await client.get("/ready")).status_code == 200
        stage.missing.extend(["executor", "milvus"])
        waiting = await client.get("/ready")
        assert (waiting.status_code, waiting.json()["missing"]) == (503, ["executor", "milvus"])
        assert (await client.get("/live")).status_code == 200
        assert (await client.get("/metrics")).status_code == 200
        topics = await client.get("/asyncapi")
        assert "chat.requested.v1" in topics.text
        assert topics.text.startswith("asyncapi:")


async def test_ingest_away_is_a_problem_not_a_crash(stage: Stage) -> None:
    async with stage.client() as client:
        for request in (
            client.build_request("GET", "/v1/documents"),
            client.build_request("POST", "/v1/documents", files={"file": b"x" * 100_000}),
            client.build_request("DELETE", "/v1/documents/d1"),
        ):
            response = await client.send(request)
            assert response.status_code == 503
            assert response.json()["type"] == "urn:sluice:problem:ingest-away"
            assert response.headers["retry-after"] == "2"
