"""Serving HTTP beside other work: a busy port is named, open streams do not hold up the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from libs.kernel import PermanentError
from libs.service.ending import EndingMiddleware
from libs.service.health import Health
from libs.service.http import listen_on, serve_http
from libs.web.health import health_app
from tests.ports import free_port


def streaming_app() -> FastAPI:
    app = FastAPI()

    async def words() -> AsyncIterator[str]:
        while True:
            yield "data: word\n\n"
            await asyncio.sleep(0.01)

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        return StreamingResponse(words(), media_type="text/event-stream")

    return app


async def test_a_busy_port_is_named_with_what_to_set() -> None:
    with listen_on("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PermanentError, match=rf"port {port} .* set SLUICE_PORT"):
            await serve_http(FastAPI(), "127.0.0.1", port, setting="SLUICE_PORT")


async def test_open_streams_are_cut_and_the_port_is_free_again() -> None:
    stop, started, port = asyncio.Event(), asyncio.Event(), free_port()
    serving = asyncio.create_task(
        serve_http(streaming_app(), "127.0.0.1", port, stop=stop, started=started)
    )
    await started.wait()
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
        client.stream("GET", "/stream") as response,
    ):
        lines = response.aiter_lines()
        assert await anext(lines) == "data: word"
        stop.set()
        await serving  # the stream itself has no end
        assert [line async for line in lines][-1:] == [""]  # whole, not cut off
    listen_on("127.0.0.1", port).close()


async def test_serving_that_is_cut_short_leaves_no_connection_to_an_app_that_is_closing() -> None:
    app, begun, left = streaming_app(), asyncio.Event(), asyncio.Event()

    @app.get("/long")
    async def long() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    started, port = asyncio.Event(), free_port()
    serving = asyncio.create_task(
        serve_http(app, "127.0.0.1", port, stop=asyncio.Event(), started=started)
    )
    await started.wait()
    idle, busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    idle[1].write(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"404" in await idle[0].readline()
    busy[1].write(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await begun.wait()
    serving.cancel()
    await asyncio.wait({serving})
    assert left.is_set()
    for reader, writer in (idle, busy):
        with suppress(ConnectionError):
            writer.write(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(60):
                assert b"HTTP/1.1" not in (await reader.read()).partition(b"\r\n\r\n")[2]
        writer.close()


async def test_a_request_in_work_gets_its_time_and_one_that_takes_longer_may_come_again() -> None:
    app, stop, begun = FastAPI(), asyncio.Event(), asyncio.Event()

    @app.get("/quick")
    async def quick() -> str:
        await stop.wait()
        return "done"

    @app.get("/endless")
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    transport = httpx.ASGITransport(EndingMiddleware(app, stop, grace_s=0.05))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        asked = [asyncio.create_task(client.get(path)) for path in ("/quick", "/endless")]
        await begun.wait()
        stop.set()
        quick_answer, endless_answer = await asyncio.gather(*asked)
    assert quick_answer.json() == "done"
    assert endless_answer.status_code == 503
    assert endless_answer.headers["content-type"] == "application/problem+json"
    assert endless_answer.headers["retry-after"]


async def test_an_app_that_cannot_start_is_an_error_not_an_exit() -> None:
    app = FastAPI()

    async def broken_lifespan(_app: FastAPI) -> AsyncIterator[None]:
        raise RuntimeError("no model")
        yield

    app.router.lifespan_context = broken_lifespan  # type: ignore[assignment]
    with pytest.raises(PermanentError, match="cannot-start"):
        await serve_http(app, "127.0.0.1", free_port(), stop=asyncio.Event())


async def test_readiness_names_each_missing_part_until_it_comes() -> None:
    health = Health()
    transport = httpx.ASGITransport(health_app(health.names))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        health.report("consumer parser", "kafka")
        health.report("broker", "kafka")
        health.report("models", "embedding-model")
        answer = await client.get("/ready")
        assert answer.status_code == 503
        assert answer.json()["missing"] == ["embedding-model", "kafka"]
        for source in ("consumer parser", "broker", "models"):
            health.report(source, None)
        assert (await client.get("/ready")).status_code == 200


async def test_metrics_of_a_worker_are_not_for_a_page_that_rebound_its_name() -> None:
    for allowed, status in ((), 403), (("evil.example",), 200):
        transport = httpx.ASGITransport(health_app(Health().names, allowed))
        async with httpx.AsyncClient(transport=transport, base_url="http://evil.example") as client:
            assert (await client.get("/metrics")).status_code == status
            assert (await client.get("/live")).status_code == 200
