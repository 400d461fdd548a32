"""What /metrics says of requests, and of the process itself."""

import asyncio
from pathlib import Path

import httpx
from prometheus_client import REGISTRY

from libs.web import Reader, new_app
from tests.servers.databases import sqlite


async def _nothing() -> list[str]:
    return []


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_requests_are_counted_by_template_and_refusals_by_reason(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as db:
        app = new_app("measured", db=db, missing=_nothing)

        @app.get("/measured/{name}")
        async def item(name: str, caller: Reader) -> str:
            return f"{name} {caller.tenant}"

        keys = count("http_refused_total", reason="key")
        of = {"route": "/measured/{name}", "method": "GET", "status": "401"}
        known = count("http_requests_total", **of)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for name in ("a", "b"):
                assert (await client.get(f"/measured/{name}")).status_code == 401
            strange = await client.get("/measured/a", headers={"Host": "evil.example"})
            text = (await client.get("/metrics")).text
    assert strange.status_code == 403
    assert count("http_requests_total", **of) == known + 2
    assert count("http_refused_total", reason="key") == keys + 2
    assert count("http_refused_total", reason="forbidden") >= 1
    assert 'route="/measured/{name}"' in text
    assert "/measured/a" not in text
    assert "process_open_fds" in text


async def test_tasks_that_have_not_ended_are_counted(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as db:
        app = new_app("measured", db=db, missing=_nothing)
        transport = httpx.ASGITransport(app)
        forever = asyncio.Event()
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.get("/metrics")
            before = count("event_loop_tasks")
            leaked = [asyncio.create_task(forever.wait()) for _ in range(7)]
            await client.get("/metrics")
            assert count("event_loop_tasks") == before + 7
            forever.set()
            await asyncio.gather(*leaked)
            await client.get("/metrics")
    assert count("event_loop_tasks") == before
