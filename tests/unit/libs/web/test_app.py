"""The shared HTTP parts on a small app: who gets in, and what every error looks like."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy.exc import OperationalError

from libs.kernel import ConflictError, DiskError, NotFoundError, PermanentError, TransientError
from libs.storage.sql import Database, api_keys
from libs.web import Admin, Member, Reader, new_app, rate_limited

FAULTS: dict[str, Exception] = {
    "missing": NotFoundError("there is no x"),
    "conflict": ConflictError("it ended"),
    "permanent": PermanentError("too-odd", "make it even"),
    "away": TransientError("SQL is away: secret.host:3306"),
    "full": DiskError("/secret/path has no room"),
    "read-only": DiskError("/secret/path cannot be written", full=False),
    "sql": OperationalError("SELECT secret", {}, Exception("db at /secret/path")),
    "bug": RuntimeError("secret internals"),
    "limited": rate_limited("Slow down.", retry_after_s=7),
}


class Body(BaseModel):
    query: str


def small_app(db: Database, missing: list[str]) -> FastAPI:
    async def names() -> list[str]:
        return missing

    app = new_app("test", db=db, missing=names, allowed_hosts=["docs.example"], max_body_bytes=50)

    @app.get("/whoami")
    async def whoami(principal: Reader) -> dict[str, str]:
        return {"tenant": principal.tenant}

    @app.post("/change")
    async def change(_principal: Member, body: Body) -> str:
        return body.query

    @app.get("/admin")
    async def admin(_principal: Admin) -> None: ...

    @app.get("/fault/{name}")
    async def fault(name: str) -> None:
        raise FAULTS[name]

    return app


@pytest.fixture
async def missing() -> list[str]:
    return []


@pytest.fixture
async def client(db: Database, missing: list[str]) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(small_app(db, missing), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as http:
        yield http


async def key(db: Database, tenant: str = "acme", role: str = "member") -> str:
    async with db.work() as sql:
        return (await api_keys.create(sql, tenant, role=role, name="test")).clear


def problem(response: httpx.Response, status: int) -> dict[str, object]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, object] = response.json()
    assert body["status"] == status
    assert str(body["type"]).startswith("urn:sluice:problem:")
    assert body["title"]
    assert body["detail"]
    return body


async def test_a_key_is_taken_from_three_places(client: httpx.AsyncClient, db: Database) -> None:
    clear = await key(db)
    for headers in (
        {"Authorization": f"Bearer {clear}"},
        {"X-API-Key": clear},
        {"Cookie": f"sluice_key={clear}"},
    ):
        response = await client.get("/whoami", headers=headers)
        assert response.json() == {"tenant": "acme"}


OWN = [
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://behind.a.proxy"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://127.0.0.1:8080"},
]
FOREIGN = [
    {},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:8080"},
    {"Origin": "http://127.0.0.1:3000"},  # another port of this machine is another page
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:8080.evil.example"},
    {"Origin": "null"},
    {"Origin": "http://[::1"},
    {"Origin": ""},
]


@pytest.mark.parametrize(
    ("headers", "status"), [*((own, 200) for own in OWN), *((other, 403) for other in FOREIGN)]
)
async def test_the_cookie_changes_things_from_our_own_pages_only(
    client: httpx.AsyncClient, db: Database, headers: dict[str, str], status: int
) -> None:
    clear = await key(db)
    cookie = {**headers, "Cookie": f"sluice_key={clear}"}
    changed = await client.post("/change", headers=cookie, json={"query": "x"})
    assert changed.status_code == status
    if status == 403:
        assert problem(changed, 403)["type"] == "urn:sluice:problem:foreign-origin"
    assert (await client.get("/whoami", headers=cookie)).status_code == 200
    by_header = {**headers, "X-API-Key": clear}
    assert (await client.post("/change", headers=by_header, json={"query": "x"})).is_success


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer x"}, {"X-API-Key": "ключ"}])
async def test_no_valid_key_is_401(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    response = await client.get("/whoami", headers=raw)
    problem(response, 401)
    assert response.headers["www-authenticate"] == "Bearer"


async def test_a_revoked_key_is_refused_and_only_its_tenant_can_revoke(
    client: httpx.AsyncClient, db: Database
) -> None:
    async with db.work() as sql:
        made = await api_keys.create(sql, "acme", role="reader", name="laptop")
        assert not await api_keys.revoke(sql, "other", made.id)
    headers = {"X-API-Key": made.clear}
    assert (await client.get("/whoami", headers=headers)).status_code == 200
    async with db.work() as sql:
        assert await api_keys.revoke(sql, "acme", made.id)
        assert not await api_keys.revoke(sql, "acme", made.id)
    problem(await client.get("/whoami", headers=headers), 401)


async def test_the_clear_key_is_nowhere_in_sql(db: Database) -> None:
    clear = await key(db)
    async with db.reading() as sql:
        rows = await api_keys.listing(sql, "acme")
    assert len(rows) == 1
    assert "key_sha256" not in rows[0]
    assert clear not in str(rows[0].values())


@pytest.mark.parametrize("tenant", ["", "a/b", "..", "A", "-a", "a" * 64])
async def test_a_tenant_is_a_safe_name(db: Database, tenant: str) -> None:
    with pytest.raises(PermanentError, match="bad-tenant"):
        await key(db, tenant)


async def test_roles_bound_what_a_key_may_do(client: httpx.AsyncClient, db: Database) -> None:
    reader = {"X-API-Key": await key(db, role="reader")}
    admin = {"X-API-Key": await key(db, role="admin")}
    problem(await client.post("/change", headers=reader, json={"query": "x"}), 403)
    problem(await client.get("/admin", headers=reader), 403)
    assert (await client.get("/admin", headers=admin)).status_code == 200


@pytest.mark.parametrize(
    ("name", "status", "slug"),
    [
        ("missing", 404, "not-found"),
        ("conflict", 409, "conflict"),
        ("permanent", 422, "too-odd"),
        ("full", 507, "disk-full"),
        ("read-only", 503, "disk-not-writable"),
        ("away", 503, "unavailable"),
        ("sql", 503, "unavailable"),
        ("bug", 500, "internal-error"),
        ("limited", 429, "rate-limited"),
    ],
)
async def test_error_classes_have_statuses(
    client: httpx.AsyncClient, name: str, status: int, slug: str
) -> None:
    response = await client.get(f"/fault/{name}")
    body = problem(response, status)
    assert body["type"] == f"urn:sluice:problem:{slug}"
    assert "secret" not in response.text
    assert ("retry-after" in response.headers) is (status in {429, 503, 507})
    assert ("trace_id" in body) is (status in {500, 503, 507})


async def test_bad_requests_are_problems_too(client: httpx.AsyncClient, db: Database) -> None:
    headers = {"X-API-Key": await key(db), "Content-Type": "application/json"}
    malformed = problem(await client.post("/change", headers=headers, content=b'{"a'), 422)
    assert malformed["type"] == "urn:sluice:problem:malformed-json"
    problem(await client.post("/change", headers=headers, content=b"\xff\xfe"), 422)
    invalid = problem(await client.post("/change", headers=headers, content=b'{"query": 5}'), 422)
    assert invalid["errors"] == [
        {"field": "body.query", "message": "Input should be a valid string"}
    ]
    problem(await client.get("/nowhere"), 404)
    response = await client.put("/change")
    problem(response, 405)
    assert response.headers["allow"] == "POST"


async def test_large_bodies_are_refused_declared_or_not(
    client: httpx.AsyncClient, db: Database
) -> None:
    headers = {"X-API-Key": await key(db)}

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b" " * 10

    problem(await client.post("/change", headers=headers, content=b" " * 100), 413)
    problem(await client.post("/change", headers=headers, content=pieces()), 413)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 401),
        ("LOCALHOST", 401),
        ("[::1]:8080", 401),
        ("docs.example", 401),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost@evil.example", 403),
    ],
)
async def test_only_known_hosts_are_served(
    client: httpx.AsyncClient, host: str, status: int
) -> None:
    problem(await client.get("/whoami", headers={"Host": host}), status)
    assert (await client.get("/live", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("10.1.2.3:9090", 200),
        ("[fd00::1]:9090", 200),
        ("evil.example", 403),
        ("10.1.2.3.evil.example", 403),
        ("", 403),
    ],
)
async def test_metrics_are_scraped_by_address_and_by_no_rebound_name(
    client: httpx.AsyncClient, host: str, status: int
) -> None:
    assert (await client.get("/metrics", headers={"Host": host})).status_code == status


async def test_ready_names_what_is_missing(client: httpx.AsyncClient, missing: list[str]) -> None:
    assert (await client.get("/ready")).json() == {"status": "ready", "missing": []}
    missing.append("broker")
    response = await client.get("/ready")
    assert response.status_code == 503
    assert response.json() == {"status": "waiting", "missing": ["broker"]}


async def test_metrics_are_prometheus_text(client: httpx.AsyncClient) -> None:
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert "python_info" in response.text
