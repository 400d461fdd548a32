"""A process of the platform, from before its backends are there to its orderly end."""

import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.broker import free_port, running_broker, start_broker, stop_broker
from tests.waiting import until

pytestmark = pytest.mark.integration

PROGRAM = """
import asyncio
from libs.contracts import DocumentUploaded
from libs.eventbus import Subscriptions
from libs.service.process import open_platform, run
from libs.service.settings import PlatformSettings

async def main():
    async with open_platform(PlatformSettings(), "parser") as platform:
        async def handle(event):
            async with platform.db.work() as sql:
                pass
        await platform.consume(Subscriptions().on(DocumentUploaded, handle), group_id="parser")

run(main, "parser")
"""


async def start(home: Path, bootstrap: str, **env: str) -> asyncio.subprocess.Process:
    settings = {"SLUICE_HOME": str(home), "KAFKA_BOOTSTRAP": bootstrap, **env}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, env=os.environ | settings, stderr=asyncio.subprocess.PIPE
    )


def worker(home: Path) -> tuple[bool, str] | None:
    """The process's row: whether it is ready and what it misses; None: it has no row."""
    try:
        with sqlite3.connect(home / "sluice.db") as connection:
            row = connection.execute("SELECT ready, missing FROM workers").fetchone()
    except sqlite3.OperationalError:
        return None
    return row and (bool(row[0]), row[1])


async def until_it_says(home: Path, wanted: tuple[bool, str]) -> None:
    await until(lambda: worker(home) == wanted, within_s=60)


async def stop(process: asyncio.subprocess.Process) -> str:
    process.send_signal(signal.SIGTERM)
    _, log = await asyncio.wait_for(process.communicate(), 15)
    return log.decode()


async def test_it_waits_for_the_broker_by_name_and_then_gets_ready(tmp_path: Path) -> None:
    port = free_port()
    process = await start(tmp_path, f"127.0.0.1:{port}")
    await until_it_says(tmp_path, (False, '["kafka"]'))
    broker = await start_broker(port)
    try:
        await until_it_says(tmp_path, (False, '["kafka", "topics"]'))
        preparing = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "import asyncio, sys\n"
            "from libs.eventbus.preparation import prepare_broker\n"
            "from libs.storage.sql import open_database\n"
            "async def main():\n"
            "    db = open_database(sys.argv[2])\n"
            "    await prepare_broker(sys.argv[1], db, embedded=True)\n"
            "    await db.close()\n"
            "asyncio.run(main())",
            f"127.0.0.1:{port}",
            f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}",
        )
        assert await preparing.wait() == 0
        await until_it_says(tmp_path, (True, "[]"))
        log = await stop(process)
    finally:
        await stop_broker(broker)
    assert process.returncode == 0, log
    assert worker(tmp_path) is None


async def test_it_can_be_stopped_while_it_waits(tmp_path: Path) -> None:
    process = await start(tmp_path, f"127.0.0.1:{free_port()}")
    await until_it_says(tmp_path, (False, '["kafka"]'))
    log = await stop(process)
    assert process.returncode == 0, log


async def test_a_busy_health_port_ends_it_with_one_clear_line(tmp_path: Path) -> None:
    async with running_broker() as bootstrap:  # its port is one that is in use
        port = bootstrap.split(":")[1]
        process = await start(tmp_path, bootstrap, SLUICE_HEALTH_PORT=port)
        _, log = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in log.decode()
    assert "SLUICE_HEALTH_PORT" in log.decode()
