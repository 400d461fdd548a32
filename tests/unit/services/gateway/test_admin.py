"""Who may administer, and keys."""

import pytest

from libs.storage.sql import api_keys
from tests.unit.services.gateway.conftest import Stage

ROUTES = [
    ("GET", "/v1/admin/lag"),
    ("GET", "/v1/admin/dlq"),
    ("GET", "/v1/admin/dlq/x"),
    ("POST", "/v1/admin/dlq/x/redrive"),
    ("DELETE", "/v1/admin/dlq/x"),
    ("POST", "/v1/admin/dlq/redrive"),
    ("POST", "/v1/admin/dlq/purge"),
    ("GET", "/v1/admin/keys"),
    ("POST", "/v1/admin/keys"),
    ("DELETE", "/v1/admin/keys/x"),
    ("GET", "/v1/admin/reindex"),
    ("POST", "/v1/admin/reindex"),
    ("DELETE", "/v1/admin/reindex"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_only_administrators_get_in(stage: Stage, method: str, path: str) -> None:
    for role in ("reader", "member"):
        async with await stage.admin(role=role) as client:
            assert (await client.request(method, path, json={})).status_code == 403
    async with stage.client(None) as client:
        assert (await client.request(method, path, json={})).status_code == 401


async def test_a_made_key_is_shown_once_and_works_in_its_own_tenant_only(stage: Stage) -> None:
    async with await stage.admin() as client:
        made = (await client.post("/v1/admin/keys", json={"name": "ci", "role": "reader"})).json()
        listed = (await client.get("/v1/admin/keys")).json()["items"]
    assert made["key"].startswith("slk_")
    assert made["key"] not in str(listed)
    assert made["id"] in {key["id"] for key in listed}
    async with stage.gateway.db.reading() as sql:
        principal = await api_keys.authenticate(sql, made["key"])
    assert principal is not None
    assert (principal.tenant, principal.role) == ("acme", "reader")
    async with await stage.admin("other") as client:
        assert made["id"] not in str((await client.get("/v1/admin/keys")).json())
        assert (await client.delete(f"/v1/admin/keys/{made['id']}")).status_code == 404


async def test_a_revoked_key_is_refused_and_nobody_locks_himself_out(stage: Stage) -> None:
    async with await stage.admin() as client:
        made = (await client.post("/v1/admin/keys", json={"name": "old"})).json()
        assert (await client.delete(f"/v1/admin/keys/{made['id']}")).status_code == 204
        assert (await client.delete(f"/v1/admin/keys/{made['id']}")).status_code == 404
        keys = (await client.get("/v1/admin/keys")).json()["items"]
        (own,) = [key["id"] for key in keys if key["role"] == "admin"]
        refused = await client.delete(f"/v1/admin/keys/{own}")
    assert (refused.status_code, "another one" in refused.json()["detail"]) == (409, True)
    stage.keys["revoked"] = made["key"]
    async with stage.client("revoked") as client:
        assert (await client.get("/v1/conversations/x")).status_code == 401
