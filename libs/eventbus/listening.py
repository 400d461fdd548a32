"""Broadcast readers: every replica reads the partitions it assigns to itself, without a group."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from libs.contracts import read
from libs.contracts.topics import Topic, topic_of
from libs.eventbus.closing import close_client
from libs.eventbus.connection import KafkaConnection, reader_client
from libs.eventbus.membership import BROKER_TIMEOUT_S, POLL_MS
from libs.eventbus.message import Record, schema_of
from libs.eventbus.reporting import REJOIN_DELAY_S, Report, report_nothing
from libs.eventbus.waiting import until_any
from libs.kernel import set_within

log = structlog.get_logger(__name__)

E = TypeVar("E")


class Listener:
    """Calls `handle` for each new event of a type, one after the other.

    For fan-out that only makes things quick: SQL is the truth, so an event whose handler raises
    is logged and passed over, and one that was published while nobody listened is missed.
    """

    def __init__(
        self,
        kafka: KafkaConnection,
        event_type: type[E],
        handle: Callable[[E], Awaitable[None]],
        *,
        partitions: Collection[int] | None = None,
        report: Report = report_nothing,
    ) -> None:
        """`partitions`: which to read; None reads all."""
        self.ready = asyncio.Event()  # from now on nothing is missed
        self._kafka = kafka
        self._event_type = event_type
        self._handle = handle
        self._report = report
        topic: Topic = topic_of(event_type.__name__)
        wanted = range(topic.partitions) if partitions is None else partitions
        self._assigned = [TopicPartition(topic.name, partition) for partition in wanted]
        self._log_is_new = asyncio.Event()
        self._positions: dict[TopicPartition, int] = {}

    def new_epoch(self) -> None:
        """The broker lost its log: read the new one from its beginning."""
        self._log_is_new.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until `stop` is set; outlives the broker."""
        while not stop.is_set():
            self._report("kafka")
            client = reader_client(self._kafka)
            try:
                await until_any(self._read(client), stop.wait(), self._log_is_new.wait())
            except (KafkaError, OSError) as exc:
                log.warning("listener_lost", error=repr(exc))
                await set_within(stop, REJOIN_DELAY_S)
            finally:
                await close_client(client, BROKER_TIMEOUT_S)
            if self._log_is_new.is_set():
                self._log_is_new.clear()
                self._positions = dict.fromkeys(self._assigned, 0)

    async def _read(self, client: AIOKafkaConsumer) -> None:
        await client.start()
        client.assign(self._assigned)
        for partition in self._assigned:
            if partition not in self._positions:
                end = await client.end_offsets([partition])
                self._positions[partition] = end[partition]
            client.seek(partition, self._positions[partition])
        self.ready.set()
        self._report(None)
        while True:
            for partition, records in (await client.getmany(timeout_ms=POLL_MS)).items():
                for record in records:
                    await self._deliver(record)
                    self._positions[partition] = record.offset + 1

    async def _deliver(self, record: Record) -> None:
        try:
            event: Any = await read(record.value or b"", schema_of(record))
            if isinstance(event, self._event_type):
                await self._handle(event)
        except Exception:
            log.exception("listener_failed", event_type=self._event_type.__name__)
