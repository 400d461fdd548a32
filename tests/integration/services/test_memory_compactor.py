"""The memory compactor as its own process, with Faust on the embedded broker."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from libs.contracts import TurnCompleted, to_record
from libs.contracts.memory import ConversationMemory
from libs.eventbus import KafkaConnection
from libs.eventbus.admin import apply_topics
from libs.eventbus.epoch import ensure_epoch
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.publisher import KafkaPublisher
from libs.storage.sql import Database, open_database, turns
from libs.storage.sql.memories import load_memory
from libs.storage.sql.workers import living
from tests.broker import start_broker, stop_broker
from tests.ports import free_port
from tests.servers.kafka import PASSWORD, USER, Kafka

ROOT = Path(__file__).parents[3]


class Stack:
    """A broker, a database and the service."""

    def __init__(self, home: Path, db: Database, port: int) -> None:
        self.home = home
        self.db = db
        self.port = port
        self.bootstrap = f"127.0.0.1:{port}"
        self.broker: asyncio.subprocess.Process | None = None

    async def start_broker(self) -> None:
        self.broker = await start_broker(self.port)
        await apply_topics(KafkaConnection(self.bootstrap))
        await ensure_epoch(KafkaConnection(self.bootstrap), self.db)

    async def start_service(
        self, *, catch_up_interval_s: float, **settings: str
    ) -> asyncio.subprocess.Process:
        environment = os.environ | {
            "SLUICE_HOME": str(self.home),
            "KAFKA_BOOTSTRAP": self.bootstrap,
            "SLUICE_MEMORY_CATCH_UP_INTERVAL_S": str(catch_up_interval_s),
            **settings,
        }
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "services.memory_compactor", cwd=ROOT, env=environment
        )

    async def completed_turn(self, conversation_id: str) -> TurnCompleted:
        async with self.db.work() as sql:
            turn = await turns.create_turn(sql, "acme", conversation_id, "What?", 0)
            await turns.finish(sql, "acme", turn["id"], turns.Outcome("done", answer="That."))
        return TurnCompleted("acme", conversation_id, turn["id"], "done")

    async def publish(self, event: TurnCompleted) -> None:
        async with KafkaPublisher(KafkaConnection(self.bootstrap)) as publisher:
            await publisher.send(to_record(event))

    async def memory(self, conversation_id: str) -> ConversationMemory:
        async with self.db.reading() as sql:
            return await load_memory(sql, "acme", conversation_id)

    async def folded(self, conversation_id: str, seq: int, *, within_s: float) -> None:
        async with asyncio.timeout(within_s):
            while True:
                if (await self.memory(conversation_id)).folded_turn_seq >= seq:
                    return
                await asyncio.sleep(0.05)

    async def ready(self) -> None:
        async with asyncio.timeout(60):
            while True:
                async with self.db.reading() as sql:
                    if any(row["ready"] for row in await living(sql)):
                        return
                await asyncio.sleep(0.1)


@asynccontextmanager
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    await db.create_schema()
    made = Stack(tmp_path, db, free_port())
    try:
        yield made
    finally:
        if made.broker is not None:
            await stop_broker(made.broker)
        await db.close()


async def end(process: asyncio.subprocess.Process) -> int:
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        return await process.wait()


async def test_waits_for_the_broker_folds_and_ends_in_good_order(tmp_path: Path) -> None:
    async with stack(tmp_path) as made:
        service = await made.start_service(catch_up_interval_s=3600)
        async with made.db.work() as sql:
            conversation_id = await turns.create_conversation(sql, "acme")
        await made.start_broker()
        await made.ready()
        await made.publish(await made.completed_turn(conversation_id))
        await made.folded(conversation_id, 1, within_s=60)
        await made.publish(await made.completed_turn(conversation_id))
        await made.folded(conversation_id, 2, within_s=60)
        assert (tmp_path / "faust").is_dir()
        assert await end(service) == 0
        async with made.db.reading() as sql:
            assert await living(sql) == []


async def test_goes_on_after_a_broker_that_lost_its_log(tmp_path: Path) -> None:
    async with stack(tmp_path) as made:
        await made.start_broker()
        async with made.db.work() as sql:
            conversation_id = await turns.create_conversation(sql, "acme")
        service = await made.start_service(catch_up_interval_s=1)
        await made.publish(await made.completed_turn(conversation_id))
        await made.folded(conversation_id, 1, within_s=60)
        assert made.broker is not None
        await stop_broker(made.broker)
        await made.completed_turn(conversation_id)
        await made.folded(conversation_id, 2, within_s=60)  # no broker, but SQL says what is behind
        await made.start_broker()
        await made.publish(await made.completed_turn(conversation_id))
        await made.folded(conversation_id, 3, within_s=60)
        assert service.returncode is None
        assert await end(service) == 0


@pytest.mark.on_server
async def test_it_reads_a_kafka_that_wants_tls_and_a_password(tmp_path: Path, kafka: Kafka) -> None:
    async with stack(tmp_path) as made:
        made.bootstrap = kafka.bootstrap
        await prepare_broker(KafkaConnection(kafka.bootstrap), made.db)
        service = await made.start_service(
            catch_up_interval_s=3600,
            KAFKA_BOOTSTRAP=kafka.secure_bootstrap,
            KAFKA_SECURITY_PROTOCOL="SASL_SSL",
            KAFKA_SASL_MECHANISM="SCRAM-SHA-512",
            KAFKA_SASL_USERNAME=USER,
            KAFKA_SASL_PASSWORD=PASSWORD,
            KAFKA_SSL_CAFILE=str(kafka.ca_file),
        )
        await made.ready()
        async with made.db.work() as sql:
            conversation_id = await turns.create_conversation(sql, "acme")
        await made.publish(await made.completed_turn(conversation_id))
        await made.folded(conversation_id, 1, within_s=60)
        assert await end(service) == 0
