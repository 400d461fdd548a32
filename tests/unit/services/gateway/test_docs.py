"""The description of the HTTP surface: whole, and readable without the internet."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from services.ingest.api.app import create_app as create_ingest_app
from services.ingest.api.deps import Ingest
from tests.fakes import FakeObjectStore
from tests.unit.services.gateway.conftest import Stage

SCRIPT = Path("services/gateway/static/docs.js").read_text()


async def _ready() -> list[str]:
    return []


@pytest.fixture
async def whole(stage: Stage) -> AsyncIterator[Stage]:
    """A gateway before a real ingest app."""
    app = create_ingest_app(
        Ingest(stage.gateway.db, FakeObjectStore(), 1_000, 0.01), missing=_ready
    )
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as ingest:
        stage.gateway = replace(stage.gateway, ingest=ingest)
        yield stage


async def test_the_description_holds_the_gateways_routes_and_those_it_passes_on(
    whole: Stage,
) -> None:
    async with whole.client(None) as client:
        response = await client.get("/openapi.json")
    assert response.status_code == 200
    api = response.json()
    expected = {"/v1/conversations/{conversation_id}/turns", "/v1/documents", "/v1/search"}
    assert expected | {"/v1/turns/{turn_id}/events"} <= set(api["paths"])
    named = set(re.findall(r"#/components/schemas/([\w-]+)", response.text))
    assert {"DocumentView", "TurnOut"} <= named <= set(api["components"]["schemas"])


async def test_every_route_names_the_errors_that_its_key_path_and_body_can_cause(
    whole: Stage,
) -> None:
    async with whole.client(None) as client:
        api = (await client.get("/openapi.json")).json()
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for path, item in api["paths"].items():
        for method, operation in item.items():
            answers = operation["responses"]
            wanted = {"403", "500"}
            if path.startswith("/v1/"):
                wanted |= {"401", "503"} | (set() if method == "get" else {"507"})
            if "{" in path:
                wanted |= {"404"}
            if "requestBody" in operation:
                wanted |= {"408", "413", "422"}
            assert wanted <= set(answers), (method, path)
            for status in set(answers) - {"200", "201", "202", "204", "307"}:
                if (path, status) != ("/ready", "503"):  # names what is missing
                    content = answers[status]["content"]
                    assert content == {"application/problem+json": problem}, (method, path, status)


async def test_without_ingest_the_gateways_own_routes_are_described(stage: Stage) -> None:
    async with stage.client(None) as client:
        api = (await client.get("/openapi.json")).json()
    assert "/v1/search" in api["paths"]
    assert "/v1/documents" not in api["paths"]


async def test_the_page_of_the_description_needs_nothing_from_elsewhere(stage: Stage) -> None:
    async with stage.client(None) as client:
        page = await client.get("/docs")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        for path in re.findall(r'(?:src|href)="([^"]+)"', page.text):
            assert (await client.get(path)).status_code == 200, path
    assert not re.search(r"https?://|<script(?![^>]* src=)|<style", page.text + SCRIPT)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", SCRIPT)


async def test_headers_that_are_not_ascii_pass_to_ingest(whole: Stage) -> None:
    async with whole.client() as client:
        odd = {b"User-Agent": "中文".encode(), b"X-Note": b"\xff"}
        response = await client.get("/v1/documents", headers=odd)
    assert (response.status_code, response.json()["items"]) == (200, [])
