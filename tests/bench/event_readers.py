"""The readers that `tests.bench.eventbus` compares, one run of one of them per process.

`python -m tests.bench.event_readers NAME BOOTSTRAP GROUP COUNT` reads COUNT records of the topic
from its beginning, decodes each, hands it to a handler that only counts, commits, and prints the
records per second and per second of its own CPU, from the first handled one to the last.
"""

import asyncio
import gc
import logging
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from libs.contracts import DocumentUploaded, decode
from libs.eventbus import Consumer, KafkaConnection, Subscriptions
from libs.observability import tracing
from libs.storage.sql import open_database

TOPIC = "documents.uploaded.v1"
SESSION_S = 6
COMMIT_INTERVAL_S = 0.5


class Count:
    """The handler's work: notes the first and the last of `wanted` events."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.seen = 0
        self.started = 0.0
        self.cpu_started_s = 0.0
        self.ended = 0.0
        self.done = asyncio.Event()

    async def handle(self, _event: Any) -> None:
        if not self.seen:
            self.started, self.cpu_started_s = perf_counter(), process_time()
        self.seen += 1
        if self.seen == self.wanted:
            self.ended = perf_counter()
            self.done.set()

    def per_second(self) -> float:
        """From the first to the wanted one."""
        return self.wanted / (self.ended - self.started)

    def committed_per_second(self) -> float:
        """The same with all that followed until now: commits, and leaving the group."""
        return self.wanted / (perf_counter() - self.started)


async def bare(bootstrap: str, group: str, count: Count) -> float:
    """aiokafka's own loop: everything it has, decoded, handled, committed every half second."""
    client = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_S * 1000,
        heartbeat_interval_ms=1000,
    )
    await client.start()
    committed_at = perf_counter()
    while not count.done.is_set():
        for records in (await client.getmany(timeout_ms=200)).values():
            for record in records:
                await count.handle(decode(record.value))
        if perf_counter() - committed_at >= COMMIT_INTERVAL_S:
            await client.commit()
            committed_at = perf_counter()
    await client.commit()
    per_second = count.committed_per_second()
    await client.stop()
    return per_second


async def ours(bootstrap: str, group: str, count: Count) -> float:
    """The event runtime as services use it: per-key order, commits, metrics, log context."""
    with tempfile.TemporaryDirectory() as folder:
        db = open_database(f"sqlite+aiosqlite:///{folder}/bench.db")
        await db.create_schema()
        kafka = KafkaConnection(bootstrap, session_timeout_s=SESSION_S)
        subscriptions = Subscriptions().on(DocumentUploaded, count.handle)
        stop = asyncio.Event()
        consumer = Consumer(kafka, db, subscriptions, group_id=group)
        running = asyncio.create_task(consumer.run(stop))
        await count.done.wait()
        while consumer.engine.unfinished_count:  # noqa: ASYNC110 - the last one is just ending
            await asyncio.sleep(0)
        stop.set()
        await running  # the last commit and leaving count, too
        per_second = count.committed_per_second()
        await db.close()
        return per_second


class Discard(SpanExporter):
    """Takes finished spans, as a collector would."""

    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


async def ours_traced(bootstrap: str, group: str, count: Count) -> float:
    """The same with a recorded span for every message."""
    tracing.configure_tracing("bench", BatchSpanProcessor(Discard(), max_queue_size=100_000))
    return await ours(bootstrap, group, count)


async def faststream(bootstrap: str, group: str, count: Count, policy: str = "ACK_FIRST") -> float:
    from faststream import AckPolicy
    from faststream.kafka import KafkaBroker, KafkaMessage

    broker = KafkaBroker(bootstrap, logger=None)

    async def decoded(message: KafkaMessage) -> Any:
        return decode(message.body)

    subscriber = broker.subscriber(
        TOPIC,
        group_id=group,
        auto_offset_reset="earliest",
        decoder=decoded,
        ack_policy=AckPolicy[policy],
        session_timeout_ms=SESSION_S * 1000,
        heartbeat_interval_ms=1000,
    )

    async def handle(event: Any) -> None:
        await count.handle(event)

    subscriber(handle)

    await broker.start()
    await count.done.wait()
    per_second = count.per_second()
    await broker.stop()
    return per_second


async def faststream_ack(bootstrap: str, group: str, count: Count) -> float:
    """FastStream acknowledging each message after its handler."""
    return await faststream(bootstrap, group, count, "ACK")


async def faust(bootstrap: str, group: str, count: Count) -> float:
    import faust as library

    folder = tempfile.mkdtemp()
    app = library.App(
        group,
        broker=f"kafka://{bootstrap}",
        store="memory://",
        datadir=folder,
        web_enabled=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=SESSION_S,
        broker_heartbeat_interval=1,
        broker_commit_interval=COMMIT_INTERVAL_S,
    )
    topic = app.topic(TOPIC, value_type=bytes, value_serializer="raw", internal=False)

    async def handle(stream: Any) -> None:
        async for value in stream:
            await count.handle(decode(value))

    app.agent(topic)(handle)

    await app.start()
    await count.done.wait()
    return count.per_second()


Reader = Callable[[str, str, Count], Awaitable[float]]
READERS: dict[str, Reader] = {
    "bare": bare,
    "ours": ours,
    "ours_traced": ours_traced,
    "faststream": faststream,
    "faststream_ack": faststream_ack,
    "faust": faust,
}


async def run_reader(name: str, bootstrap: str, group: str, wanted: int) -> None:
    count = Count(wanted)
    gc.freeze()  # as services do; every reader gets it
    per_second = await READERS[name](bootstrap, group, count)
    if count.seen < wanted:
        raise RuntimeError(f"{name} handled {count.seen} of {wanted} records")
    print(per_second, wanted / (process_time() - count.cpu_started_s), flush=True)
    os._exit(0)  # Faust's threads would keep the process


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)
    _, reader, address, group_id, number = sys.argv
    if reader != "faust":  # Faust brings its own loop handling
        uvloop.install()
    asyncio.run(run_reader(reader, address, group_id, int(number)))
