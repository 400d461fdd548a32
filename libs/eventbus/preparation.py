"""Everything a broker needs before anybody uses it: all topics, then its epoch."""

import asyncio
from collections.abc import Sequence

import structlog
from aiokafka import TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError

from libs.contracts import TopicSpec, topic_specs
from libs.eventbus.admin import apply_topics
from libs.eventbus.closing import close_client
from libs.eventbus.connection import KafkaConnection
from libs.eventbus.epoch import ensure_epoch, read_epoch
from libs.eventbus.reaching import not_reached
from libs.kernel import PermanentError, TransientError
from libs.storage.sql import Database

log = structlog.get_logger(__name__)

_REQUEST_TIMEOUT_S = 5.0


async def prepare_broker(
    kafka: KafkaConnection,
    db: Database,
    *,
    embedded: bool = False,
    replication_factor: int = 1,
    timeout_s: float = 60.0,
) -> str:
    """Create the topics and give a new log its epoch; returns the epoch. Safe to repeat.

    Waits for a broker that is not there yet. Clients that reach an *embedded* broker between its
    restart and this call leave topics with a wrong shape behind, or records in topics that did not
    exist yet, which stay broken. As long as the log has no epoch nobody counts on anything in it,
    so such topics are made anew.

    Raises: as `apply_topics`.
    """
    try:
        async with asyncio.timeout(timeout_s):
            if embedded and await _patiently_read_epoch(kafka) is None:
                await _make_anew(kafka, topic_specs())
            await apply_topics(kafka, replication_factor=replication_factor, timeout_s=timeout_s)
            return await ensure_epoch(kafka, db, timeout_s=timeout_s)
    except TimeoutError as exc:
        what = f"broker at {kafka.bootstrap} not ready within {timeout_s:g} s"
        raise await not_reached(kafka, what) from exc


async def _patiently_read_epoch(kafka: KafkaConnection) -> str | None:
    while True:
        try:
            return await read_epoch(kafka, timeout_s=_REQUEST_TIMEOUT_S)
        except TransientError:
            await asyncio.sleep(0.1)


async def _make_anew(kafka: KafkaConnection, specs: Sequence[TopicSpec]) -> None:
    """Until every topic has its shape and holds nothing: create, delete, create."""
    while True:
        try:
            await _clear(kafka, specs)
            await apply_topics(kafka, specs)
            if not await _holds_records(kafka, specs):
                return
        except (KafkaError, OSError, TimeoutError, PermanentError) as exc:
            log.warning("topics_not_clean_yet", error=repr(exc))


async def _clear(kafka: KafkaConnection, specs: Sequence[TopicSpec]) -> None:
    admin = kafka.admin()
    try:
        await admin.start()
        # Only a topic that exists can be deleted, and only deleting removes stray records.
        await admin.create_topics([NewTopic(spec.name, spec.partitions, 1) for spec in specs])
        await admin.delete_topics([spec.name for spec in specs])
    finally:
        await admin.close()


async def _holds_records(kafka: KafkaConnection, specs: Sequence[TopicSpec]) -> bool:
    consumer = kafka.consumer()
    try:
        await consumer.start()
        places = [TopicPartition(spec.name, p) for spec in specs for p in range(spec.partitions)]
        async with asyncio.timeout(_REQUEST_TIMEOUT_S):
            ends = await consumer.end_offsets(places)
        return any(ends.values())
    finally:
        await close_client(consumer, _REQUEST_TIMEOUT_S)
