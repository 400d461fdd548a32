"""A member that was frozen for longer than its session wakes up when others own its partitions."""

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from libs.contracts import DocumentUploaded
from libs.eventbus import Subscriptions
from libs.storage.sql.tables import leases
from tests.integration.eventbus.kafka_bus import KafkaBus
from tests.integration.eventbus.member_process import take
from tests.suites.eventbus import record, until_committed

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
PARTITIONS = 6


async def publish(bus: KafkaBus, *names: str) -> None:
    """One message to each partition, in order."""
    async with bus.db.work() as sql:
        for name in names:
            await sql.execute(insert(leases).values(name=name, holder="uploaded", expires_at=0))
    await bus.publish(*(record(name, partition=n) for n, name in enumerate(names)))


async def effects(bus: KafkaBus) -> Counter[str]:
    async with bus.db.reading() as sql:
        return Counter(row["holder"] for row in await sql.rows(select(leases.c.holder)))


async def until_it_says(process: asyncio.subprocess.Process, words: bytes) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while words not in await process.stdout.readline():
            pass


@pytest.mark.parametrize("ends", ["as it wakes up", "when others took over"])
async def test_it_neither_turns_offsets_back_nor_repeats_an_effect(
    bus: KafkaBus, tmp_path: Path, ends: str
) -> None:
    go, url = tmp_path / "go", str(bus.db.engine.url)
    frozen = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.eventbus.member_process"),
        *(bus.broker.bootstrap, url, "frozen", str(go)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await publish(bus, "slow0", "slow1", *(f"a{n}" for n in range(2, PARTITIONS)))
        await until_it_says(frozen, b"partitions_assigned")
        await until_committed(bus, PARTITIONS - 2)
        assert await effects(bus) == {"frozen": 4, "uploaded": 2}
        frozen.send_signal(signal.SIGSTOP)

        async def handle(event: DocumentUploaded) -> None:
            await take(bus.db, event.document_id, "other")

        await bus.start(Subscriptions().on(DocumentUploaded, handle))
        for lot in "bc":
            await publish(bus, *(f"{lot}{n}" for n in range(PARTITIONS)))
        await until_committed(bus, 3 * PARTITIONS)
        assert await effects(bus) == {"frozen": 4, "other": 14}

        if ends == "as it wakes up":
            go.touch()
        frozen.send_signal(signal.SIGCONT)
        if ends == "as it wakes up":
            await until_it_says(frozen, b"late: slow0")
        await until_it_says(frozen, b"partitions_assigned")
        for _ in range(15):  # a while in which it commits several times
            assert await bus.committed() == 3 * PARTITIONS
            await asyncio.sleep(0.1)
        go.touch()
        await publish(bus, *(f"d{n}" for n in range(PARTITIONS)))
        await until_committed(bus, 4 * PARTITIONS)
        found = await effects(bus)
        assert found.total() == found["frozen"] + found["other"] == 4 * PARTITIONS
        assert found["frozen"] > 4  # it is a member again
    finally:
        frozen.kill()
        await frozen.wait()
