"""The ingest API on real sockets, SQLite and disk: what only a real server can show."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from libs.service.http import serve_http
from libs.storage.objects import DiskObjectStore
from libs.storage.sql import Database, api_keys
from services.ingest.api.app import create_app
from services.ingest.api.deps import Ingest
from tests.ports import free_port

MB = 1024 * 1024


@dataclass
class Served:
    base: str
    port: int
    key: str
    db: Database
    files: Path
    client: httpx.AsyncClient

    def stored(self) -> list[Path]:
        return [path for path in self.files.rglob("*") if path.is_file()]


async def _nothing() -> list[str]:
    return []


@pytest.fixture
async def served(db: Database, tmp_path: Path) -> AsyncIterator[Served]:
    async with db.work() as sql:
        key = (await api_keys.create(sql, "acme", role="member", name="test")).clear
    files = tmp_path / "objects"
    ingest = Ingest(db, DiskObjectStore(files), 80 * MB, 0.05)
    port = free_port()
    stop, started = asyncio.Event(), asyncio.Event()
    app = create_app(ingest, missing=_nothing)
    serving = asyncio.create_task(serve_http(app, "127.0.0.1", port, stop=stop, started=started))
    await asyncio.wait_for(started.wait(), 60)
    base = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base, headers={"X-API-Key": key}, timeout=60) as client:
        yield Served(base, port, key, db, files, client)
    stop.set()
    await serving


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the disk tells nobody
            await asyncio.sleep(0.02)


def body_of(size_bytes: int) -> tuple[dict[str, str], Callable[[], AsyncIterator[bytes]]]:
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="big.bin"\r\n\r\n'

    async def pieces() -> AsyncIterator[bytes]:
        yield head
        for _ in range(size_bytes // MB):
            yield b"x" * MB
        yield b"\r\n--b--\r\n"

    return {"Content-Type": "multipart/form-data; boundary=b"}, pieces


async def test_a_large_upload_streams_to_disk_in_bounded_memory(served: Served) -> None:
    headers, pieces = body_of(60 * MB)
    process = psutil.Process()
    before = process.memory_info().rss
    peak = before

    async def watched() -> AsyncIterator[bytes]:
        nonlocal peak
        async for piece in pieces():
            peak = max(peak, process.memory_info().rss)
            yield piece

    response = await served.client.post("/v1/documents", headers=headers, content=watched())
    assert response.status_code == 202, response.text
    assert [path.stat().st_size for path in served.stored()] == [60 * MB]
    assert peak - before < 30 * MB


async def test_a_broken_connection_leaves_nothing(served: Served) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(
        f"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {served.key}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000000\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'.encode()
        + b"x" * MB
    )
    await writer.drain()
    await until(lambda: served.stored() != [])  # the upload is on its way to the disk
    writer.transport.abort()
    await until(lambda: served.stored() == [])
    assert (await served.client.get("/v1/documents")).json()["items"] == []


async def test_a_file_over_the_limit_is_told_so_while_it_streams(served: Served) -> None:
    headers, pieces = body_of(85 * MB)
    try:
        response = await served.client.post("/v1/documents", headers=headers, content=pieces())
    except httpx.WriteError:
        pass  # the server need not read on to the end
    else:
        assert response.status_code == 413
    assert served.stored() == []
    assert (await served.client.get("/live")).status_code == 200


async def test_one_content_uploaded_at_once_is_one_document(served: Served) -> None:
    async def once() -> str:
        response = await served.client.post("/v1/documents", files={"file": b"same" * 50_000})
        return str(response.json()["id"])

    ids = await asyncio.gather(*(once() for _ in range(16)))
    assert len(set(ids)) == 1
    assert len(served.stored()) == 1


async def test_progress_streams_unbuffered(served: Served) -> None:
    body = (await served.client.post("/v1/documents", files={"file": b"x"})).json()
    async with served.client.stream("GET", f"/v1/documents/{body['id']}/events") as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "id: 1"
        assert response.headers["x-accel-buffering"] == "no"
