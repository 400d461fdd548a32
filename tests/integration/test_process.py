"""A process of the platform, from before its backends are there to its orderly end."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from libs.eventbus.reaching import USER_REFUSED
from libs.storage.sql import open_database
from libs.storage.sql.schema import REVISION
from tests.broker import running_broker, start_broker, stop_broker
from tests.ports import free_port
from tests.servers.kafka import Kafka
from tests.standins.schema_registry import RegistryServer
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


PATIENCE_S = 90  # a start imports much, which takes long while other suites run beside


@asynccontextmanager
async def started(
    home: Path, bootstrap: str, **env: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    settings = {"SLUICE_HOME": str(home), "KAFKA_BOOTSTRAP": bootstrap, **env}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, env=os.environ | settings, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def worker(home: Path) -> tuple[bool, str] | None:
    """The process's row: whether it is ready and what it misses; None: it has no row."""
    try:
        with sqlite3.connect(home / "sluice.db") as connection:
            row = connection.execute("SELECT ready, missing FROM workers").fetchone()
    except sqlite3.OperationalError:
        return None
    return row and (bool(row[0]), row[1])


async def until_it_says(home: Path, wanted: tuple[bool, str]) -> None:
    await until(lambda: worker(home) == wanted, within_s=PATIENCE_S)


async def stop(process: asyncio.subprocess.Process) -> str:
    process.send_signal(signal.SIGTERM)
    return await end_of(process, within_s=60)


async def end_of(process: asyncio.subprocess.Process, *, within_s: float) -> str:
    _, log = await asyncio.wait_for(process.communicate(), within_s)
    return log.decode()


PREPARE = """
import asyncio, sys
from libs.eventbus import KafkaConnection
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.reaching import USER_REFUSED
from libs.storage.sql import open_database

async def main():
    db = open_database(sys.argv[2])
    await prepare_broker(KafkaConnection(sys.argv[1]), db, embedded=True)
    await db.close()

asyncio.run(main())
"""


async def prepare(home: Path, bootstrap: str) -> None:
    url = f"sqlite+aiosqlite:///{home / 'sluice.db'}"
    preparing = await asyncio.create_subprocess_exec(sys.executable, "-c", PREPARE, bootstrap, url)
    assert await preparing.wait() == 0


async def test_it_waits_for_the_broker_by_name_and_then_gets_ready(tmp_path: Path) -> None:
    port = free_port()
    bootstrap = f"127.0.0.1:{port}"
    await migrate(tmp_path)
    async with started(tmp_path, bootstrap) as process:
        await until_it_says(tmp_path, (False, '["kafka"]'))
        broker = await start_broker(port)
        try:
            await until_it_says(tmp_path, (False, '["kafka", "topics"]'))
            await prepare(tmp_path, bootstrap)
            await until_it_says(tmp_path, (True, "[]"))
            log = await stop(process)
        finally:
            await stop_broker(broker)
    assert process.returncode == 0, log
    assert worker(tmp_path) is None


@pytest.mark.on_server
async def test_it_names_a_wrong_password_of_the_broker_and_logs_none(
    tmp_path: Path, kafka: Kafka
) -> None:
    await migrate(tmp_path)
    secured = {
        "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "KAFKA_SASL_USERNAME": "sluice",
        "KAFKA_SASL_PASSWORD": "not-the-pa55word",
        "KAFKA_SSL_CAFILE": str(kafka.ca_file),
    }
    async with started(tmp_path, kafka.secure_bootstrap, **secured) as process:
        await until_it_says(tmp_path, (False, json.dumps(["kafka", USER_REFUSED])))
        log = await stop(process)
    assert process.returncode == 0, log
    assert USER_REFUSED in log
    assert "not-the-pa55word" not in log


async def test_settings_of_the_broker_that_cannot_work_end_it_with_what_to_set(
    tmp_path: Path,
) -> None:
    async with started(tmp_path, "127.0.0.1:1", KAFKA_SECURITY_PROTOCOL="SASL_SSL") as process:
        log = await end_of(process, within_s=PATIENCE_S)
    assert process.returncode == 1
    assert "set KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD" in log


async def test_it_waits_for_the_schema_registry_by_name_and_registers_there(
    tmp_path: Path,
) -> None:
    registry = RegistryServer(("sluice", "pa55"))
    await migrate(tmp_path)
    async with (
        running_broker() as bootstrap,
        started(tmp_path, bootstrap, SCHEMA_REGISTRY_URL=registry.url) as process,
    ):
        await prepare(tmp_path, bootstrap)
        await until_it_says(tmp_path, (False, '["kafka", "schema-registry"]'))
        with registry:
            await until_it_says(tmp_path, (True, "[]"))
            assert registry.level_of("documents.uploaded.v1-value") == "FULL_TRANSITIVE"
        log = await stop(process)
    assert process.returncode == 0, log
    assert "pa55" not in log


async def test_a_schema_that_the_registry_refuses_ends_it_in_the_registrys_words(
    tmp_path: Path,
) -> None:
    await migrate(tmp_path)
    other = {"type": "record", "name": "DocumentUploaded", "namespace": "sluice.documents"}
    fields = [{"name": "document_id", "type": "int"}]
    with RegistryServer() as registry:
        peer = SchemaRegistryClient({"url": registry.url})
        schema = Schema(json.dumps({**other, "fields": fields}), "AVRO")
        peer.register_schema("documents.uploaded.v1-value", schema)
        settings = {"SCHEMA_REGISTRY_URL": registry.url}
        async with started(tmp_path, f"127.0.0.1:{free_port()}", **settings) as process:
            log = await end_of(process, within_s=PATIENCE_S)
    assert process.returncode == 1
    assert "schema-refused" in log
    assert "incompatible with an earlier schema" in log


async def migrate(home: Path) -> tuple[str | None, str | None]:
    db = open_database(f"sqlite+aiosqlite:///{home / 'sluice.db'}")
    try:
        return await db.create_schema()
    finally:
        await db.close()


async def test_it_makes_no_tables_and_goes_on_when_they_are_there(tmp_path: Path) -> None:
    async with started(tmp_path, f"127.0.0.1:{free_port()}") as process:
        assert process.stderr is not None
        while b"run `sluice migrate`" not in await process.stderr.readline():
            pass
        assert await migrate(tmp_path) == (None, REVISION)
        await until_it_says(tmp_path, (False, '["kafka"]'))
        await stop(process)
    assert process.returncode == 0


async def test_it_can_be_stopped_while_it_waits(tmp_path: Path) -> None:
    await migrate(tmp_path)
    async with started(tmp_path, f"127.0.0.1:{free_port()}") as process:
        await until_it_says(tmp_path, (False, '["kafka"]'))
        log = await stop(process)
    assert process.returncode == 0, log


async def test_a_busy_health_port_ends_it_with_one_clear_line(tmp_path: Path) -> None:
    async with running_broker() as bootstrap:  # its port is one that is in use
        port = bootstrap.split(":")[1]
        async with started(tmp_path, bootstrap, SLUICE_HEALTH_PORT=port) as process:
            log = await end_of(process, within_s=PATIENCE_S)
    assert process.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in log
    assert "SLUICE_HEALTH_PORT" in log
