"""The embedded broker dies with everything in its memory, and nothing is lost."""

import asyncio
from pathlib import Path

import pytest

from libs.eventbus import KafkaConnection
from libs.eventbus.preparation import prepare_broker
from libs.service.process import Platform
from libs.service.settings import PlatformSettings
from tests.broker import start_broker, stop_broker
from tests.integration.one_step import pipeline
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.integration


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
        await until(lambda: platform.health.ready, within_s=60)
        await work.submit(range(20))
        await until(lambda: len(work.effects) == 20, within_s=60)
        await work.tell("before")
        await until(lambda: work.heard == ["before"])

        work.gate.clear()  # these are in the old log, and in the workers' hands
        await work.submit(range(20, 60))
        await stop_broker(broker)
        await work.submit(range(60, 80))  # committed while there is no broker
        await until(lambda: "kafka" in platform.health.missing, within_s=60)
        work.gate.set()
        broker = await new_broker(settings, platform)
        await until(lambda: len(work.effects) == 80, within_s=60)
        await until(lambda: platform.health.ready, within_s=60)

        for number in range(5):
            await work.tell(f"after-{number}")
        await until(lambda: {f"after-{n}" for n in range(5)} <= set(work.heard))
        await work.submit(range(80, 100))
        await until(lambda: len(work.effects) == 100, within_s=60)
        assert set(work.effects.values()) == {1}
    await stop_broker(broker)


async def test_three_restarts_in_a_row_while_work_comes_in(settings: PlatformSettings) -> None:
    async with pipeline(settings) as work:
        broker = await new_broker(settings, work.platform)
        await until(lambda: work.platform.health.ready, within_s=60)
        for number in range(3):
            await work.submit(range(number * 20, number * 20 + 10))
            await stop_broker(broker)
            await work.submit(range(number * 20 + 10, number * 20 + 20))
            broker = await new_broker(settings, work.platform)
        await until(lambda: len(work.effects) == 60, within_s=60)
        assert set(work.effects.values()) == {1}
    await stop_broker(broker)
