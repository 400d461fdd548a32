"""Another tenant's ids are unknown ids, on every route of the OpenAPI document.

A route whose path names something that has no example here fails the test.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from libs.storage.sql.tables import metadata
from tests.integration.security.api import Api

pytestmark = pytest.mark.integration

_OF_PROCESSES = {"leases", "workers"}  # they say who works, not what was done
# What a route needs to get as far as looking its id up.
BODIES: dict[tuple[str, str], Any] = {
    ("post", "/v1/conversations/{conversation_id}/turns"): {"text": "What?"},
    ("put", "/v1/documents/{document_id}/plan"): {},
    ("post", "/v1/documents/{document_id}/plan/preview"): {},
}
# Ids that are not a tenant's: asked for without an example, they are unknown to everybody.
NOBODYS = {"name"}


async def everything(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with api.db.reading() as sql:
        for table in metadata.sorted_tables:
            if table.name not in _OF_PROCESSES:
                found[table.name] = [dict(row) for row in await sql.rows(select(table))]
    found["objects"] = await api.objects.keys("")
    return found


async def settled(api: Api) -> dict[str, Any]:
    """All there is, once the workers have nothing left to do."""
    before = await everything(api)
    while True:
        async with api.client() as client:
            await client.get("/live")
        after = await everything(api)
        if after == before and all(row["state"] == "indexed" for row in after["documents"]):
            return after
        before = after


def routes(document: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            given = [p for p in operation.get("parameters", ()) if p["in"] == "path"]
            if given:
                yield method, path, [parameter["name"] for parameter in given]


async def test_foreign_ids_are_unknown_ids(api: Api) -> None:
    owner, intruder = await api.key("admin"), await api.key("admin", "other")
    known: dict[str, str] = json.loads(await api.known_ids(owner))
    unknown = {name: "0" * len(value) for name, value in known.items()}
    before = await settled(api)
    async with api.client(intruder) as client, api.client(owner) as own:
        document = (await client.get("/openapi.json")).json()
        found = list(routes(document))
        assert len(found) >= 10
        for method, path, names in found:
            missing = set(names) - set(known) - NOBODYS
            assert not missing, f"{path} names {missing}: give an example in `Api.known_ids`"
            answers = []
            for ids in (known, unknown):
                address = path.format(**ids)
                sent = BODIES.get((method, path))
                answers.append(await client.request(method, address, json=sent))
            foreign, nothing = answers
            assert foreign.status_code == nothing.status_code == 404, (method, path)
            assert _without_ids(foreign.text) == _without_ids(nothing.text)
            if method == "get":
                assert (await own.get(path.format(**known))).status_code < 300, path
        assert await settled(api) == before
        listed = (await client.get("/v1/documents")).json()
        assert listed["items"] == []
        assert (await client.post("/v1/search", json={"query": "gate"})).json()["hits"] == []


async def test_a_new_route_without_an_example_would_be_noticed() -> None:
    added = {"paths": {"/v1/x/{secret_id}": {"get": {"parameters": [{"in": "path", "name": "s"}]}}}}
    assert list(routes(added)) == [("get", "/v1/x/{secret_id}", ["s"])]


def _without_ids(text: str) -> str:
    return re.sub(r"[0-9a-f]{32}", "id", text)
