"""Documents through the gateway: bytes pass both ways as they come, and so do hang-ups."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.integration.gateway.conftest import Front

pytestmark = pytest.mark.integration


async def test_an_upload_reaches_ingest_while_it_is_being_sent(front: Front) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"x" * 100_000
        async with asyncio.timeout(60):  # a gateway that collected the body would never see more
            await front.ingest.first_bytes.wait()
        for _ in range(200):
            yield b"x" * 100_000

    async with front.client() as client:
        response = await client.post("/v1/documents", content=body())
    assert (response.status_code, response.json()) == (202, {"received": 20_100_000})


async def test_a_download_reaches_the_client_while_it_is_being_sent(front: Front) -> None:
    async with (
        front.client() as client,
        client.stream("GET", "/v1/documents/d1/file") as response,
    ):
        blocks = response.aiter_raw()
        assert await anext(blocks) == b"first"
        front.ingest.go_on.set()
        assert b"".join([block async for block in blocks]) == b"second"
    assert response.headers["content-disposition"] == "attachment"


async def test_a_client_that_leaves_a_stream_ends_it_at_ingest(front: Front) -> None:
    async with (
        front.client() as client,
        client.stream("GET", "/v1/documents/d1/events") as response,
    ):
        assert await anext(response.aiter_raw()) == b"id: 1\n\n"
        assert response.headers["content-type"].startswith("text/event-stream")
    async with asyncio.timeout(60):
        await front.ingest.hung_up.wait()


async def test_a_client_that_leaves_an_upload_ends_it_at_ingest(front: Front) -> None:
    host, port = front.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    key = front.stage.keys["acme"]
    head = f"POST /v1/documents HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {key}\r\n"
    writer.write(head.encode() + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1_000)
    await writer.drain()
    async with asyncio.timeout(60):
        await front.ingest.first_bytes.wait()
        writer.close()
        await front.ingest.hung_up.wait()
    async with front.client() as client:
        assert (await client.get("/live")).status_code == 200


async def test_a_refusal_passes_before_the_body_has_ended(front: Front) -> None:
    async with front.client() as client:
        response = await client.post("/v1/documents/refused", content=b"x" * 900_000)
    assert response.status_code == 413
    assert response.headers["content-type"] == "application/problem+json"


async def test_address_key_and_headers_pass_but_not_the_cookie(front: Front) -> None:
    path = "/v1/documents/a%2Fb%20%E4%B8%AD/text?from=1&q=%E4%B8%AD"
    headers = {"Idempotency-Key": "k1", "Sec-Fetch-Site": "same-origin"}
    async with front.client(None, Cookie=f"sluice_key={front.stage.keys['acme']}") as client:
        response = await client.put(path, content=b"y", headers=headers)
    assert (response.status_code, response.headers["x-from"]) == (204, "ingest")
    seen = front.ingest.seen[0]
    assert (seen["method"], f"{seen['path']}?{seen['query']}") == ("PUT", path)
    assert seen["headers"]["authorization"] == f"Bearer {front.stage.keys['acme']}"
    assert (seen["headers"]["idempotency-key"], seen["headers"]["content-length"]) == ("k1", "1")
    assert "cookie" not in seen["headers"]


async def test_ingest_judges_by_the_key_that_the_gateway_judged_by(front: Front) -> None:
    keys = front.stage.keys
    both = {"X-API-Key": keys["acme"], "Cookie": f"sluice_key={keys['other']}"}
    async with front.client(None, **both) as client:
        await client.get("/v1/documents")
        await client.get("/v1/documents", headers={"Authorization": "Basic Zm9v"})
    seen = [seen["headers"] for seen in front.ingest.seen]
    assert [headers["authorization"] for headers in seen] == [f"Bearer {keys['acme']}"] * 2
    assert not any({"cookie", "x-api-key"} & headers.keys() for headers in seen)


async def test_a_path_cannot_leave_the_documents(front: Front) -> None:
    host, port = front.url.removeprefix("http://").split(":")
    for path in ("/v1/documents/../admin", "/v1/documents/%2e%2e/admin", "/v1/documents//x"):
        reader, writer = await asyncio.open_connection(host, int(port))
        key = front.stage.keys["acme"]
        head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {key}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n")
        await reader.read()
        writer.close()
    assert all(seen["path"].startswith("/v1/documents/") for seen in front.ingest.seen)


async def test_ingest_that_dies_in_the_middle_is_a_problem(front: Front) -> None:
    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.close()

    server = await asyncio.start_server(die, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, front.client() as client:
        front.stage.gateway.ingest.base_url = httpx.URL(f"http://127.0.0.1:{port}")
        response = await client.post("/v1/documents", content=b"x" * 500_000)
    assert response.status_code == 503
    assert response.json()["type"] == "urn:sluice:problem:ingest-away"
