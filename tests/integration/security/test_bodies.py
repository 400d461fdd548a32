"""Bodies that never end, or hardly begin: each holds its own connection for a bounded time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from libs.storage.sql import Database, open_database
from libs.web import new_app
from libs.web.bodies import Pace
from tests.integration.gateway.serving import served

pytestmark = pytest.mark.integration

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Wire:
    """A server with short limits, and raw connections to it."""

    port: int

    @asynccontextmanager
    async def sent(self, *headers: str, path: str = "/small") -> AsyncIterator[Stream]:
        """A connection on which a request's head was sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
        writer.write("\r\n".join(lines).encode())
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    async with served(_app(db)) as url:
        yield Wire(int(url.rsplit(":", 1)[1]))
    await db.close()


def _app(db: Database) -> object:
    async def nothing() -> list[str]:
        return []

    pace = Pace(piece_s=0.2, grace_s=0.6, min_bytes_per_s=100)
    app = new_app("test", db=db, missing=nothing, max_body_bytes=100_000, pace=pace)

    @app.post("/small")
    async def small(body: list[int]) -> int:
        return len(body)

    @app.post("/refused")
    async def refused() -> None:
        return

    return app


async def answer(reader: asyncio.StreamReader) -> str:
    """Everything the server says until it hangs up."""
    said = b""
    async with asyncio.timeout(60):
        with suppress(ConnectionResetError):  # to a sender that goes on, after the answer
            while block := await reader.read(65_536):
                said += block
    return said.decode()


def reset_or(reply: str, status: int) -> bool:
    """A sender that goes on may find the connection reset, and the answer lost with it."""
    return not reply or reply.startswith(f"HTTP/1.1 {status} ")


async def test_a_body_that_does_not_come_is_given_up(wire: Wire) -> None:
    async with wire.sent("Content-Length: 10") as (reader, _):
        said = await answer(reader)
    assert said.startswith("HTTP/1.1 408 ")
    assert "urn:sluice:problem:body-too-slow" in said


async def test_a_body_that_drips_is_given_up(wire: Wire) -> None:
    async with wire.sent("Content-Length: 100000") as (reader, writer):
        said = asyncio.create_task(answer(reader))
        for _ in range(200):  # each byte comes in time, all of them would take for ever
            if said.done():
                break
            writer.write(b" ")
            await asyncio.sleep(0.05)
        assert reset_or(await said, 408)


async def test_an_endless_body_is_refused_and_then_cut_off(wire: Wire) -> None:
    async with wire.sent("Transfer-Encoding: chunked") as (reader, writer):
        said = asyncio.create_task(answer(reader))

        async def send_for_ever() -> None:
            while True:
                writer.write(b"2710\r\n" + b" " * 10_000 + b"\r\n")
                await writer.drain()

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_for_ever(), 60)
        reply = await said
    assert reset_or(reply, 413)


async def test_a_body_that_nobody_reads_does_not_hold_the_connection(wire: Wire) -> None:
    async with wire.sent("Content-Length: 1000000", path="/refused") as (reader, writer):
        writer.write(b"x" * 1_000)
        said = await answer(reader)
    assert "connection: close" in said.lower()


async def test_a_declared_size_is_refused_before_the_body_is_sent(wire: Wire) -> None:
    async with wire.sent("Content-Length: 100001", "Expect: 100-continue") as (reader, _):
        said = await answer(reader)
    assert said.startswith("HTTP/1.1 413 ")
    assert "100 Continue" not in said


async def test_a_connection_lives_on_after_ordinary_requests(wire: Wire) -> None:
    async with wire.sent("Content-Length: 6", "Content-Type: application/json") as stream:
        reader, writer = stream
        writer.write(b"[1, 2]")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert b"connection: close" not in head.lower()
        assert await reader.readexactly(1) == b"2"
        writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await answer(reader)).startswith("HTTP/1.1 200 ")


async def test_headers_of_megabytes_are_refused(wire: Wire) -> None:
    async with wire.sent(f"X-Much: {'x' * 3_000_000}") as (reader, _):
        reply = await answer(reader)
    assert reset_or(reply, 400)
