"""The servers that the containers use, on this machine's loopback."""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.servers.full import FullSize, running_all
from tests.servers.kafka import Kafka


@contextlib.contextmanager
def servers(folder: Path, secrets: Mapping[str, str]) -> Iterator[dict[str, int]]:
    """Each server's port by its name in the Compose file."""
    # What Kafka tells its clients is where the containers find it.
    kafka = Kafka(folder / "kafka", proxied_host="kafka", proxied_at=9092)
    full = FullSize(folder, kafka)
    full.minio.access_key, full.minio.secret_key = "sluice", secrets["MINIO_ROOT_PASSWORD"]
    with running_all(full):
        asyncio.run(_make_database(full.mariadb.url(), secrets["MYSQL_PASSWORD"]))
        ports = {name: server.port for name, server in full.servers.items()}
        yield {**ports, "kafka": kafka.inner_port}


@contextlib.contextmanager
def socket_files(folder: Path, ports: Mapping[str, int]) -> Iterator[None]:
    """Each server behind a socket file of its name in this folder."""
    folder.mkdir()
    pairs = [f"unix:{folder / name}=tcp:127.0.0.1:{port}" for name, port in ports.items()]
    with _process([sys.executable, str(Path(__file__).parent / "forward.py"), *pairs]):
        until = time.monotonic() + 10
        while not all((folder / name).exists() for name in ports):
            assert time.monotonic() < until, "the forwarder isn't there after 10 s"
            time.sleep(0.05)
        yield


@contextlib.contextmanager
def _process(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


async def _make_database(url: str, password: str) -> None:
    """What MySQL's image makes of MYSQL_DATABASE, MYSQL_USER and MYSQL_PASSWORD."""
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text("CREATE DATABASE sluice"))
        await connection.execute(text(f"CREATE USER sluice@'%' IDENTIFIED BY '{password}'"))
        await connection.execute(text("GRANT ALL ON sluice.* TO sluice@'%'"))
    await engine.dispose()
