"""The suite's bus on a broker, with a relay of its own for the outbox rows."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from libs.contracts import OutgoingRecord
from libs.eventbus import Consumer, Policies, Subscriptions, apply_topics
from libs.kernel import now_us
from libs.storage.sql import OutboxRow, open_database
from tests.servers.brokers import AnyBroker, connection_to, specs_of
from tests.suites.eventbus import POLICIES, TOPIC, FlakyDatabase

GROUP = "parser"
CONTROL = "chat.control.v1"
SESSION_S = 2.0


class KafkaBus:
    """One broker, one group; several consumers where a test wants them."""

    def __init__(self, broker: AnyBroker, db: FlakyDatabase) -> None:
        self.broker = broker
        self.db = db
        self.dead: list[OutgoingRecord] = []
        self.kafka = connection_to(broker, session_timeout_s=SESSION_S)
        self.consumer: Consumer | None = None
        self._problem: str | None = None
        self._producer: AIOKafkaProducer | None = None
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        db.after_commit = self._relay

    async def connect(self) -> None:
        """Prepare a fresh broker for publishing."""
        await self.disconnect()
        await apply_topics(self.kafka, specs_of(TOPIC, CONTROL))
        self._producer = AIOKafkaProducer(bootstrap_servers=self.broker.bootstrap)
        await self._producer.start()

    async def disconnect(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def restart_broker(self) -> None:
        """Lose the log: the same address, nothing in it."""
        await self.disconnect()
        self._producer = None
        await self.broker.restart()
        await self.connect()

    async def start(self, subscriptions: Subscriptions, policies: Policies = POLICIES) -> None:
        self._stop = asyncio.Event()
        self.consumer = Consumer(
            self.kafka,
            self.db,
            subscriptions,
            group_id=GROUP,
            lanes=("", "urgent"),
            policies=policies,
            report=self._hear,
        )
        self._running = asyncio.create_task(self.consumer.run(self._stop))

    async def stop(self) -> None:
        self._stop.set()
        if self._running is not None:
            await self._running

    async def kill(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def publish(self, *records: OutgoingRecord) -> None:
        for record in records:
            await self._send(record)

    async def committed(self) -> int:
        return sum((await committed_offsets(self.kafka.bootstrap)).values())

    def unfinished(self) -> int:
        return 0 if self.consumer is None else self.consumer.engine.unfinished_count

    def problem(self) -> str | None:
        return self._problem

    def _hear(self, problem: str | None) -> None:
        self._problem = problem

    async def _relay(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            task = asyncio.create_task(self._send_when_due(row))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send_when_due(self, row: OutboxRow) -> None:
        await asyncio.sleep(max(0, row.not_before - now_us()) / 1e6)
        await self._send(row.record)
        if row.record.topic.endswith(".dlq"):
            self.dead.append(row.record)

    async def _send(self, record: OutgoingRecord) -> None:
        headers = [(name, value.encode()) for name, value in record.headers.items()]
        assert self._producer is not None
        await self._producer.send_and_wait(
            record.topic,
            record.value,
            key=record.key.encode(),
            partition=record.partition,
            headers=headers,
        )


async def committed_offsets(bootstrap: str) -> dict[int, int]:
    """What the group committed, by partition of TOPIC."""
    client = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False)
    places = [TopicPartition(TOPIC, partition) for partition in range(6)]
    client.assign(places)
    await client.start()
    try:
        return {place.partition: await client.committed(place) or 0 for place in places}
    finally:
        await client.stop()


@asynccontextmanager
async def kafka_bus(folder: Path, broker: AnyBroker) -> AsyncIterator[KafkaBus]:
    """A bus on a broker that holds nothing, and a fresh database."""
    db = FlakyDatabase(open_database(f"sqlite+aiosqlite:///{folder}/test.db").engine)
    await db.create_schema()
    bus = KafkaBus(broker, db)
    await bus.connect()
    try:
        yield bus
    finally:
        await bus.kill()
        await bus.disconnect()
        await db.close()
