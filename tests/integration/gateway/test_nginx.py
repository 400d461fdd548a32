"""Behind nginx with its default proxy settings: streams, heartbeats, resuming, long idle phases."""

import asyncio
import getpass
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from services.gateway.app import create_app
from tests.integration.gateway.conftest import Front
from tests.integration.gateway.serving import served
from tests.ports import free_port
from tests.unit.services.gateway.conftest import SCRIPT
from tests.waiting import eventually

pytestmark = pytest.mark.integration

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
READ_TIMEOUT_S = 3  # of the proxy, far below its default; so is the heartbeat here, in proportion
CONFIG = """
user {user};
daemon off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {home}/body;
  proxy_temp_path {home}/proxy;
  fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi;
  scgi_temp_path {home}/scgi;
  gzip on;
  gzip_types *;
  gzip_proxied any;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass {upstream}; }}
    location /impatient/ {{ proxy_pass {upstream}/; proxy_read_timeout {read_timeout_s}s; }}
  }}
}}
"""


@pytest.fixture
async def proxied(front: Front, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of nginx, behind which stands a gateway."""
    if NGINX is None:
        assert os.environ.get("CI") != "true", "nginx is not installed: `apt-get install nginx`"
        pytest.skip("nginx is not installed")
    gateway = front.stage.gateway
    quick = gateway.settings.model_copy(update={"heartbeat_s": READ_TIMEOUT_S / 6})
    port, config = free_port(), tmp_path / "nginx.conf"
    async with served(create_app(replace(gateway, settings=quick))) as upstream:
        config.write_text(
            CONFIG.format(
                user=getpass.getuser(),
                home=tmp_path,
                port=port,
                upstream=upstream,
                read_timeout_s=READ_TIMEOUT_S,
            )
        )
        nginx = await asyncio.create_subprocess_exec(NGINX, "-c", str(config), "-p", str(tmp_path))
        url = f"http://127.0.0.1:{port}"
        key = {"Authorization": f"Bearer {front.stage.keys['acme']}"}
        async with httpx.AsyncClient(base_url=url, headers=key, timeout=20) as client:
            await eventually(lambda: client.get("/live"), on=httpx.ConnectError, within_s=60)
            yield client
        nginx.terminate()
        await nginx.wait()


async def test_events_pass_nginx_one_by_one_and_unpacked(
    front: Front, proxied: httpx.AsyncClient
) -> None:
    turn_id = await front.stage.ask()
    headers = {"Accept": "text/event-stream", "Accept-Encoding": "gzip, br"}
    async with proxied.stream("GET", f"/v1/turns/{turn_id}/events", headers=headers) as response:
        assert response.headers["content-encoding"] == "identity"
        lines = response.aiter_lines()
        for seq, event in enumerate(SCRIPT, 2):
            await front.stage.executor.say(turn_id, [event])
            async with asyncio.timeout(60):  # the next one is said only once this one is here
                while f"id: {seq}" != await anext(lines):
                    pass
        await front.stage.executor.end(turn_id)
        assert "event: done" in [line async for line in lines]


async def test_an_idle_stream_outlives_the_proxys_read_timeout(
    front: Front, proxied: httpx.AsyncClient
) -> None:
    turn_id = await front.stage.ask()
    path = f"/impatient/v1/turns/{turn_id}/events"
    async with proxied.stream("GET", path) as response:
        lines = response.aiter_lines()
        heartbeats = 0
        while heartbeats < 3 * 6:  # three of the proxy's timeouts
            heartbeats += await anext(lines) == ": heartbeat"
        await front.stage.executor.answer(turn_id)
        assert "event: done" in [line async for line in lines]


async def test_a_stream_is_resumed_through_nginx(front: Front, proxied: httpx.AsyncClient) -> None:
    turn_id = await front.stage.ask()
    await front.stage.executor.answer(turn_id)
    path = f"/v1/turns/{turn_id}/events"
    whole = (await proxied.get(path)).content
    frames = [frame + b"\n\n" for frame in whole.split(b"\n\n") if frame]
    for seen in range(1, len(frames)):
        rest = await proxied.get(path, headers={"Last-Event-ID": str(seen)})
        assert b"".join(frames[:seen]) + rest.content == whole
    everything = {"Last-Event-ID": str(len(frames))}
    assert (await proxied.get(path, headers=everything)).status_code == 204
