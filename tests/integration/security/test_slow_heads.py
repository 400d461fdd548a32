"""Connections on which no request comes hold nothing for long, and not the others' place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from libs.service.connections import Bounds
from libs.service.http import serve_http
from tests.integration.security.test_bodies import Stream, answer
from tests.ports import free_port

pytestmark = pytest.mark.integration

HEAD_S = 0.3
HEAD = b"GET /quick HTTP/1.1\r\nHost: localhost\r\n"


def _app() -> FastAPI:
    app = FastAPI()

    @app.get("/quick")
    async def quick() -> str:
        return "here"

    @app.post("/slow")
    async def slow(body: list[int]) -> int:
        await asyncio.sleep(3 * HEAD_S)
        return len(body)

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def words() -> AsyncIterator[str]:
            for _ in range(10):
                yield "data: word\n\n"
                await asyncio.sleep(HEAD_S / 2)

        return StreamingResponse(words(), media_type="text/event-stream")

    return app


@asynccontextmanager
async def _serving(bounds: Bounds) -> AsyncIterator[int]:
    stop, started, port = asyncio.Event(), asyncio.Event(), free_port()
    serving = asyncio.create_task(
        serve_http(_app(), "127.0.0.1", port, stop=stop, started=started, bounds=bounds)
    )
    await started.wait()
    try:
        yield port
    finally:
        stop.set()
        await serving


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with _serving(Bounds(head_s=HEAD_S)) as port:
        yield port


@asynccontextmanager
async def connected(port: int, begun: bytes = b"") -> AsyncIterator[Stream]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(begun)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def drip(writer: asyncio.StreamWriter, until: "asyncio.Task[str]") -> None:
    for _ in range(1_000):
        if until.done():
            return
        writer.write(b"X-Slow: 1\r\n")
        await asyncio.sleep(HEAD_S / 10)


async def test_a_connection_that_says_nothing_is_closed(port: int) -> None:
    async with connected(port) as (reader, _):
        assert await answer(reader) == ""


async def test_a_head_that_drips_is_given_up_however_steadily_it_comes(port: int) -> None:
    async with connected(port, HEAD) as (reader, writer):
        said = asyncio.create_task(answer(reader))
        await drip(writer, said)
        reply = await said
    assert reply == "" or reply.startswith("HTTP/1.1 408 ")  # reset to a sender that goes on


async def test_a_head_that_stops_is_answered_with_what_was_wrong(port: int) -> None:
    async with connected(port, HEAD) as (reader, _):
        reply = await answer(reader)
    assert reply.startswith("HTTP/1.1 408 ")
    assert "urn:sluice:problem:head-too-slow" in reply


@pytest.mark.parametrize("begun", ["together", "later"])
async def test_a_second_head_on_the_same_connection_is_bounded_too(port: int, begun: str) -> None:
    first = HEAD + b"\r\n"
    async with connected(port, first + (HEAD if begun == "together" else b"")) as stream:
        reader, writer = stream
        await asyncio.wait_for(reader.readuntil(b'"here"'), 60)
        if begun == "later":
            writer.write(HEAD)
        assert (await answer(reader)).startswith("HTTP/1.1 408 ")


async def test_slow_bodies_handlers_and_streams_are_none_of_its_business(port: int) -> None:
    async with (
        connected(port, b"GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") as stream,
        connected(
            port,
            b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 3\r\nConnection: close\r\n\r\n[",
        ) as slow,
    ):
        await asyncio.sleep(2 * HEAD_S)
        slow[1].write(b"1]")
        words, count = await asyncio.gather(answer(stream[0]), answer(slow[0]))
    assert words.count("data: word") == 10
    assert count.startswith("HTTP/1.1 200 ")
    assert count.endswith("1")


async def test_hundreds_of_begun_heads_keep_nobody_out(port: int) -> None:
    begun = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
    for _, writer in begun:
        writer.write(HEAD)
    last = HEAD + b"Connection: close\r\n\r\n"
    async with connected(port, last) as (reader, _):
        assert (await answer(reader)).endswith('"here"')
    said = await asyncio.gather(*(answer(reader) for reader, _ in begun))
    assert all(not reply or "head-too-slow" in reply for reply in said)
    for _, writer in begun:
        writer.close()


async def test_one_connection_too_many_is_hung_up_on_and_the_others_go_on() -> None:
    async with _serving(Bounds(max_connections=2)) as port:
        async with connected(port, HEAD) as (reader, writer), connected(port, HEAD):
            async with connected(port, HEAD) as (refused, _):
                assert await answer(refused) == ""
            writer.write(b"Connection: close\r\n\r\n")
            assert (await answer(reader)).endswith('"here"')
        async with connected(port, HEAD + b"Connection: close\r\n\r\n") as (reader, _):
            assert (await answer(reader)).endswith('"here"')
