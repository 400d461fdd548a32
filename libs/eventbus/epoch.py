"""The broker's epoch: a random id that lives and dies with the broker's log.

It is the first record of a topic of its own, and a copy is in SQL. When the two differ the log was
lost: consumers start over, and the reconciler emits what had not finished.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from libs.contracts import EPOCH_TOPIC, OutgoingRecord, topic_specs
from libs.eventbus.closing import close_client
from libs.eventbus.connection import KafkaConnection
from libs.eventbus.publisher import KafkaPublisher
from libs.kernel import TransientError, new_id
from libs.observability.metrics import BROKER_EPOCHS
from libs.storage.sql import Database
from libs.storage.sql.epochs import load_epoch, store_epoch

log = structlog.get_logger(__name__)

_PLACE = TopicPartition(EPOCH_TOPIC, 0)


@asynccontextmanager
async def _broker_errors(kafka: KafkaConnection, timeout_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except (KafkaError, OSError, TimeoutError) as exc:
        raise TransientError(f"broker at {kafka.bootstrap}: {exc or type(exc).__name__}") from exc


async def read_epoch(kafka: KafkaConnection, *, timeout_s: float = 10.0) -> str | None:
    """The epoch that the broker's log holds; None: it has none, so the log is new.

    Raises: TransientError when no broker answers.
    """
    async with _broker_errors(kafka, timeout_s):
        # Asking for a topic by name would create it, so its existence is looked up first.
        if EPOCH_TOPIC not in await _topics(kafka):
            return None
        # Not a seek to the beginning, which may be overtaken by the client's own first look-up.
        consumer = kafka.consumer(auto_offset_reset="earliest")
        try:
            await consumer.start()
            consumer.assign([_PLACE])
            first_offset = await consumer.beginning_offsets([_PLACE])
            if await consumer.end_offsets([_PLACE]) == first_offset:
                return None
            first = await consumer.getone(_PLACE)
            return str(first.value.decode())
        finally:
            await close_client(consumer, timeout_s)


async def _topics(kafka: KafkaConnection) -> dict[str, int]:
    """The partition counts of all topics."""
    admin = kafka.admin()
    try:
        await admin.start()
        return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}
    finally:
        await admin.close()


async def has_every_topic(kafka: KafkaConnection, *, timeout_s: float = 10.0) -> bool:
    """Whether the broker has every topic of the topic files, with its partitions.

    Raises: TransientError when no broker answers.
    """
    async with _broker_errors(kafka, timeout_s):
        found = await _topics(kafka)
    return all(found.get(spec.name) == spec.partitions for spec in topic_specs())


async def ensure_epoch(kafka: KafkaConnection, db: Database, *, timeout_s: float = 30.0) -> str:
    """Give a new log its epoch and keep it in SQL; returns it. Topics must be there already.

    Safe to repeat and to run in several processes: the first record that reached the log counts.

    Raises: TransientError when no broker answers or SQL is away.
    """
    epoch = await read_epoch(kafka, timeout_s=timeout_s)
    if epoch is None:
        async with KafkaPublisher(kafka, timeout_s=timeout_s) as publisher:
            await publisher.send(OutgoingRecord(EPOCH_TOPIC, "epoch", new_id().encode()))
        epoch = await read_epoch(kafka, timeout_s=timeout_s)
    if epoch is None:
        raise TransientError(f"the broker at {kafka.bootstrap} lost its epoch at once")
    async with db.work() as sql:
        if await store_epoch(sql, epoch):
            log.info("broker_epoch_is_new", epoch=epoch)
    return epoch


OnNewLog = Callable[[], None]


class EpochWatcher:
    """Knows the current epoch, and tells whoever asked when the broker's log is a new one.

    SQL is asked every second. The broker itself is asked now and then too, in case its log was
    lost and nobody looked after it.
    """

    def __init__(
        self, db: Database, kafka: KafkaConnection, *, poll_s: float = 1.0, verify_s: float = 20.0
    ) -> None:
        self.current = ""
        self._db = db
        self._kafka = kafka
        self._poll_s = poll_s
        self._verify_s = verify_s
        self._on_new_log: list[OnNewLog] = []

    def on_new_log(self, callback: OnNewLog) -> None:
        """Call back, in order of registration, after each change of the epoch."""
        self._on_new_log.append(callback)

    async def refresh(self) -> None:
        """Look into SQL; call back when the epoch changed. Raises: TransientError."""
        async with self._db.reading() as sql:
            epoch = await load_epoch(sql) or ""
        if epoch == self.current:
            return
        known, self.current = self.current, epoch
        if known:
            log.warning("broker_log_is_new", epoch=epoch)
            BROKER_EPOCHS.inc()
            for callback in self._on_new_log:
                callback()

    async def verify(self) -> bool:
        """Compare with the broker itself; False: its log has no epoch, nobody prepared it.

        Raises: TransientError when the broker or SQL is away.
        """
        epoch = await read_epoch(self._kafka)
        if epoch is not None and epoch != self.current:
            async with self._db.work() as sql:
                await store_epoch(sql, epoch)
            await self.refresh()
        return epoch is not None

    async def run(self) -> None:
        """Watch until cancelled."""
        await asyncio.gather(self._poll_forever(), self._verify_forever())

    async def _poll_forever(self) -> None:
        while True:
            try:
                await self.refresh()
            except TransientError as exc:
                log.warning("broker_epoch_not_read", error=str(exc))
            await asyncio.sleep(self._poll_s)

    async def _verify_forever(self) -> None:
        while True:
            await asyncio.sleep(self._verify_s * random.uniform(0.5, 1.5))  # noqa: S311
            try:
                if not await self.verify():
                    log.error("broker_log_has_no_epoch", hint="sluice topics apply")
            except TransientError as exc:
                log.warning("broker_epoch_not_verified", error=str(exc))
