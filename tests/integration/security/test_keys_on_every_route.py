"""Missing, wrong, revoked and weak keys on every operation of the OpenAPI document."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from libs.storage.sql import api_keys
from tests.integration.security.api import Api

pytestmark = pytest.mark.integration

OPEN = {"/live", "/ready", "/metrics", "/asyncapi"}  # what they show is nobody's


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, item in document["paths"].items():
        for method in item:
            if path not in OPEN:
                yield method, path


async def revoke(api: Api, clear: str) -> None:
    async with api.db.work() as sql:
        principal = await api_keys.authenticate(sql, clear)
        assert principal is not None
        assert await api_keys.revoke(sql, principal.tenant, principal.key_id)


async def test_no_operation_answers_without_a_key_that_is_good_now(api: Api) -> None:
    revoked = await api.key("admin")
    ids = json.loads(await api.known_ids(revoked))
    await revoke(api, revoked)
    async with api.client() as client:
        found = list(operations((await client.get("/openapi.json")).json()))
        assert len(found) > 20
        for headers, tried in (
            ({}, found),
            ({"X-API-Key": revoked}, found),
            ({"Cookie": f"sluice_key={revoked}", "Sec-Fetch-Site": "same-origin"}, found),
            ({"Authorization": f"Bearer {revoked}"}, found[:2]),
            ({"Authorization": "Basic YTpi"}, found[:2]),
            ({"Authorization": "Bearer"}, found[:2]),
            ({"X-API-Key": "slk_wrong"}, found[:2]),
            ({"X-API-Key": revoked[:-1]}, found[:2]),
            ({"X-API-Key": "' OR 1=1 --"}, found[:2]),
        ):
            for method, path in tried:
                address = path.format_map({"name": "x", **ids})
                answer = await client.request(method, address, json={}, headers=headers)
                assert answer.status_code == 401, (method, path, headers)
                assert answer.headers["content-type"] == "application/problem+json"


async def test_a_key_does_no_more_than_its_role(api: Api) -> None:
    keys = {role: await api.key(role) for role in ("admin", "member", "reader")}
    ids = json.loads(await api.known_ids(keys["admin"]))
    async with api.client() as client:
        for method, path in operations((await client.get("/openapi.json")).json()):
            refused = set()
            if path.startswith("/v1/admin/"):
                refused = {"member", "reader"}
            elif method != "get" and path.startswith("/v1/documents"):
                refused = {"reader"}
            for role in refused:
                address = path.format_map({"name": "x", **ids})
                headers = {"X-API-Key": keys[role]}
                answer = await client.request(method, address, json={}, headers=headers)
                assert answer.status_code == 403, (method, path, role)
