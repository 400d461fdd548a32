"""Gateway processes on a real broker and SQL. The services behind them are played by the tests."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from libs.eventbus import KafkaConnection, apply_topics
from libs.eventbus.epoch import ensure_epoch
from libs.kernel import new_id, now_us
from libs.storage.sql import Database, api_keys, open_database, workers
from services.gateway.readiness import NEEDED
from tests.broker import Broker, restartable_broker, stop_broker
from tests.ports import free_port
from tests.waiting import until

ROOT = Path(__file__).parents[3]


@dataclass
class Replica:
    """One gateway process, at an address that outlives it."""

    environment: dict[str, str]
    log: Path
    client: httpx.AsyncClient
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "services.gateway"),
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        await until(self._answers, within_s=120)

    async def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.returncode is None, self.log.read_text()[-3000:]
        try:
            return (await self.client.get("/live")).is_success
        except httpx.TransportError:
            return False

    async def signal(self, number: int) -> int:
        """Send it, and give the exit status of the process."""
        assert self.process is not None
        self.process.send_signal(number)
        async with asyncio.timeout(60):
            return await self.process.wait()

    async def missing(self) -> list[str]:
        return list((await self.client.get("/ready")).json()["missing"])

    async def ready_but_for(self, *names: str) -> None:
        async def so() -> bool:
            return await self.missing() == list(names)

        await until(so, within_s=60)

    async def conversation(self) -> str:
        return str((await self.client.post("/v1/conversations")).json()["id"])


@dataclass
class Stack:
    """A broker, SQL and gateway processes, which all are there."""

    broker: Broker
    home: Path
    db: Database
    replicas: Sequence[Replica]
    others: dict[str, workers.Worker]  # services whose heartbeats the test writes


@asynccontextmanager
async def running_stack(
    home: Path, replicas: int, environment: dict[str, str] | None = None
) -> AsyncGenerator[Stack, None]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(restartable_broker())
        db = open_database(f"sqlite+aiosqlite:///{home / 'sluice.db'}")
        stack.push_async_callback(db.close)
        await db.create_schema()
        async with db.work() as sql:
            key = await api_keys.create(sql, "acme", role="reader", name="test")
        await apply_topics(KafkaConnection(broker.bootstrap))
        await ensure_epoch(KafkaConnection(broker.bootstrap), db)
        others = {name: workers.Worker(new_id(), name, "here", 1, now_us()) for name in NEEDED}
        await stack.enter_async_context(_beating(db, others))
        made = [
            await stack.enter_async_context(_replica(home, n, broker, key.clear, environment or {}))
            for n in range(replicas)
        ]
        await asyncio.gather(*(replica.start() for replica in made))
        yield Stack(broker, home, db, made, others)


@asynccontextmanager
async def _replica(
    home: Path, number: int, broker: Broker, key: str, environment: dict[str, str]
) -> AsyncIterator[Replica]:
    port = free_port()
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {key}"}, timeout=20
    ) as client:
        replica = Replica(
            {
                **os.environ,
                "SLUICE_HOME": str(home),
                "SLUICE_PORT": str(port),
                "SLUICE_INGEST_PORT": str(free_port()),
                "KAFKA_BOOTSTRAP": broker.bootstrap,
                "MILVUS_URI": f"http://127.0.0.1:{free_port()}",
                **environment,
            },
            home / f"gateway-{number}.log",
            client,
        )
        try:
            yield replica
        finally:
            if replica.process is not None:
                await stop_broker(replica.process)


@asynccontextmanager
async def _beating(db: Database, others: dict[str, workers.Worker]) -> AsyncIterator[None]:
    beating = asyncio.create_task(_beat(db, others))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait({beating})


async def _beat(db: Database, others: dict[str, workers.Worker]) -> None:
    while True:
        async with db.work() as sql:
            for worker in list(others.values()):  # tests take some out
                await workers.beat(sql, worker, [])
        await asyncio.sleep(1)
