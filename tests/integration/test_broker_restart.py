"""The embedded broker dies with everything in its memory, and nothing is lost."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from libs.contracts import DocumentUploaded, TurnControl
from libs.eventbus import KafkaConnection, Subscriptions
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.reconciler import Unfinished
from libs.service.process import Platform, open_platform
from libs.service.settings import PlatformSettings
from libs.storage.sql import UnitOfWork
from libs.storage.sql.tables import leases
from tests.broker import free_port, start_broker, stop_broker
from tests.waiting import until

pytestmark = pytest.mark.integration


def upload(number: int) -> DocumentUploaded:
    return DocumentUploaded("acme", f"d{number:03}", 1, "a.txt", "text/plain", "k", 1)


class Pipeline:
    """A one-step pipeline: a lease row stands for a document, its holder for the state."""

    kind = "document"

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.gate = asyncio.Event()
        self.gate.set()
        self.effects: Counter[str] = Counter()
        self.heard: list[str] = []

    async def submit(self, numbers: range) -> None:
        for number in numbers:
            async with self.platform.db.work() as sql:
                row = {"name": upload(number).document_id, "holder": "uploaded", "expires_at": 0}
                await sql.execute(insert(leases).values(**row))
                await sql.emit(upload(number))

    async def handle(self, event: DocumentUploaded) -> None:
        await self.gate.wait()
        async with self.platform.db.work() as sql:
            done = (
                update(leases)
                .where(leases.c.name == event.document_id, leases.c.holder == "uploaded")
                .values(holder="indexed")
            )
            if await sql.compare_and_set(done):
                self.effects[event.document_id] += 1

    async def hear(self, event: TurnControl) -> None:
        self.heard.append(event.turn_id)

    async def unfinished(
        self, sql: UnitOfWork, after: str, limit: int
    ) -> Sequence[tuple[str, Unfinished]]:
        rows = await sql.rows(
            select(leases.c.name)
            .where(leases.c.holder == "uploaded", leases.c.name > after)
            .order_by(leases.c.name)
            .limit(limit)
        )
        return [(row["name"], Unfinished(upload(int(row["name"][1:])), "parser")) for row in rows]

    async def tell(self, turn_id: str) -> None:
        async with self.platform.db.work() as sql:
            await sql.emit(TurnControl("acme", turn_id, "cancel"))


@asynccontextmanager
async def pipeline(settings: PlatformSettings) -> AsyncIterator[Pipeline]:
    async with open_platform(settings, "parser") as platform:
        made = Pipeline(platform)
        subscriptions = Subscriptions().on(DocumentUploaded, made.handle)
        works = [
            asyncio.create_task(platform.consume(subscriptions, group_id="parser")),
            asyncio.create_task(platform.listen(TurnControl, made.hear)),
            asyncio.create_task(platform.reconcile(made)),
        ]
        yield made
        platform.stopping.set()
        await asyncio.gather(*works)


@pytest.fixture
def settings(tmp_path: Path) -> PlatformSettings:
    return PlatformSettings(home=tmp_path, kafka_bootstrap=f"127.0.0.1:{free_port()}")


async def new_broker(settings: PlatformSettings, platform: Platform) -> asyncio.subprocess.Process:
    """What the supervisor does when the broker is gone."""
    broker = await start_broker(int(settings.kafka_bootstrap.split(":")[1]))
    await platform.db.create_schema()
    await prepare_broker(KafkaConnection(settings.kafka_bootstrap), platform.db, embedded=True)
    return broker


async def test_nothing_is_lost_and_everybody_goes_on(settings: PlatformSettings) -> None:
    async with pipeline(settings) as work:
        platform = work.platform
        broker = await new_broker(settings, platform)
        await until(lambda: platform.health.ready, within_s=30)
        await work.submit(range(20))
        await until(lambda: len(work.effects) == 20, within_s=20)
        await work.tell("before")
        await until(lambda: work.heard == ["before"])

        work.gate.clear()  # these are in the old log, and in the workers' hands
        await work.submit(range(20, 60))
        await stop_broker(broker)
        await work.submit(range(60, 80))  # committed while there is no broker
        await until(lambda: "kafka" in platform.health.missing, within_s=20)
        work.gate.set()
        broker = await new_broker(settings, platform)
        await until(lambda: len(work.effects) == 80, within_s=40)
        await until(lambda: platform.health.ready, within_s=20)

        for number in range(5):
            await work.tell(f"after-{number}")
        await until(lambda: {f"after-{n}" for n in range(5)} <= set(work.heard))
        await work.submit(range(80, 100))
        await until(lambda: len(work.effects) == 100, within_s=20)
        assert set(work.effects.values()) == {1}
    await stop_broker(broker)


async def test_three_restarts_in_a_row_while_work_comes_in(settings: PlatformSettings) -> None:
    async with pipeline(settings) as work:
        broker = await new_broker(settings, work.platform)
        await until(lambda: work.platform.health.ready, within_s=30)
        for number in range(3):
            await work.submit(range(number * 20, number * 20 + 10))
            await stop_broker(broker)
            await work.submit(range(number * 20 + 10, number * 20 + 20))
            broker = await new_broker(settings, work.platform)
        await until(lambda: len(work.effects) == 60, within_s=60)
        assert set(work.effects.values()) == {1}
    await stop_broker(broker)
