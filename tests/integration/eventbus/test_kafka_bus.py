"""The rules of every event bus, on each broker."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.eventbus.kafka_bus import KafkaBus, kafka_bus
from tests.servers.brokers import AnyBroker
from tests.suites.eventbus import EventBusSuite, recorder

__all__ = ["recorder"]

pytestmark = pytest.mark.integration


@pytest.fixture
async def bus(tmp_path: Path, broker: AnyBroker) -> AsyncIterator[KafkaBus]:
    async with kafka_bus(tmp_path, broker) as started:
        yield started


class TestKafkaBus(EventBusSuite):
    pass
