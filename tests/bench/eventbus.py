"""The event runtime beside bare aiokafka, FastStream and Faust.

`python -m tests.bench.eventbus [embedded|kafka]`: on the embedded broker, or on Apache Kafka.
Every reader gets the same records, decodes them and commits; each run is a process of its own, as
is the broker; rounds are interleaved and medians compared.
"""

import asyncio
import logging
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from libs.contracts import DocumentUploaded, TopicSpec, retry_topic, to_record, topic_specs
from libs.eventbus import KafkaConnection, apply_topics
from libs.observability import tracing
from tests.bench.event_readers import TOPIC
from tests.broker import running_broker
from tests.servers.frame import running
from tests.servers.kafka import Kafka

BROKERS = ("embedded", "kafka")
RECORD_COUNT = 60_000
# The slower ones read fewer of the same records, so that a round stays short.
FEWER = {"faststream": 12_000, "faststream_ack": 2_000, "faust": 12_000}
KEY_COUNT = 1_000
ROUNDS = 3
RUN_TIMEOUT_S = 60

LABELS = {
    "bare": "aiokafka getmany loop",
    "ours": "Sluice",
    "ours_traced": "Sluice, a sampled span per message",
    "faststream": "FastStream, AckPolicy.ACK_FIRST",
    "faststream_ack": "FastStream, AckPolicy.ACK (each message)",
    "faust": "Faust",
}
# Who, beside whom, at least how many times as fast.
TARGETS = [
    ("ours", "bare", 0.4),
    ("ours_traced", "bare", 0.1),
    ("ours", "faststream", 4.0),
    ("ours", "faust", 6.0),
]


class Speed(NamedTuple):
    """What one run measured."""

    per_second: float
    per_cpu_second: float  # of the reader's process; tells more on a busy machine


async def fill(bootstrap: str) -> None:
    """Publish the records, every one sampled, spread over the keys."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
    await producer.start()
    for number in range(RECORD_COUNT):
        event = DocumentUploaded(
            "tenant", f"document-{number % KEY_COUNT}", number, "a.pdf", "application/pdf", "k", 9
        )
        tracing.enter_header(tracing.to_header(tracing.new(sampled=True)).encode())
        record = to_record(event)
        headers = [(name, value.encode()) for name, value in record.headers.items()]
        await producer.send(record.topic, record.value, key=record.key.encode(), headers=headers)
    await producer.stop()


async def measure(bootstrap: str, reader: str, group: str) -> Speed:
    """One run."""
    count = FEWER.get(reader, RECORD_COUNT)
    await apply_topics(KafkaConnection(bootstrap), [TopicSpec(retry_topic(TOPIC, group), 6, -1)])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.event_readers", reader, bootstrap, group, str(count)),
        stdout=subprocess.PIPE,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), RUN_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        raise
    if process.returncode:
        raise RuntimeError(f"the reader {reader} failed")
    per_second, per_cpu_second = map(float, output.split()[-2:])
    return Speed(per_second, per_cpu_second)


@asynccontextmanager
async def broker_of(kind: str) -> AsyncIterator[str]:
    """The address of a fresh broker."""
    if kind == "embedded":
        async with running_broker() as bootstrap:
            yield bootstrap
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Kafka(Path(folder), heap_mb=1024, optimised=True)) as server,
    ):
        yield server.bootstrap


async def compare(broker: str) -> dict[str, list[Speed]]:
    speeds: dict[str, list[Speed]] = {reader: [] for reader in LABELS}
    async with broker_of(broker) as bootstrap:
        await apply_topics(KafkaConnection(bootstrap), topic_specs())
        await fill(bootstrap)
        runs = [(turn, reader) for turn in range(ROUNDS) for reader in LABELS]
        for turn, reader in track(runs, "measuring", console=Console(stderr=True)):
            group = f"{reader}-{turn}"
            try:
                speeds[reader].append(await measure(bootstrap, reader, group))
            except TimeoutError:  # other rounds count; a reader without any fails below
                print(f"{LABELS[reader]} hung in round {turn + 1}", file=sys.stderr)
    return speeds


def report(broker: str, speeds: dict[str, list[Speed]]) -> bool:
    """Print the tables; True if every target is met."""
    median = {
        name: statistics.median(s.per_second for s in found) for name, found in speeds.items()
    }
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    table = Table(title=f"broker: {broker}; {load}")
    for heading in (
        "reader",
        "records/s (median)",
        "lowest",
        "highest",
        "x bare",
        "per CPU second",
    ):
        table.add_column(heading)
    for reader, label in LABELS.items():
        runs = [speed.per_second for speed in speeds[reader]]
        numbers = [f"{value:,.0f}" for value in (median[reader], min(runs), max(runs))]
        cpu = statistics.median(speed.per_cpu_second for speed in speeds[reader])
        table.add_row(label, *numbers, f"{median[reader] / median['bare']:.2f}", f"{cpu:,.0f}")
    targets = Table("target", "measured", "at least", "met")
    met = True
    for reader, other, least in TARGETS:
        ratio = median[reader] / median[other]
        met = met and ratio >= least
        name = f"{LABELS[reader]} / {LABELS[other]}"
        targets.add_row(name, f"{ratio:.2f}", f"{least:g}", "yes" if ratio >= least else "NO")
    Console(width=120).print(table, targets)
    return met


def main() -> int:
    broker = sys.argv[1] if len(sys.argv) > 1 else "embedded"
    if broker not in BROKERS:
        print(f"broker {broker}: choose one of {', '.join(BROKERS)}", file=sys.stderr)
        return 2
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # of new topics, in the beginning
    return 0 if report(broker, asyncio.run(compare(broker))) else 1


if __name__ == "__main__":
    sys.exit(main())
