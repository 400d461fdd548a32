"""A bus on each broker, and who records what it delivers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.eventbus.kafka_bus import KafkaBus, kafka_bus
from tests.servers.brokers import AnyBroker
from tests.suites.eventbus import recorder

__all__ = ["recorder"]


@pytest.fixture
async def bus(tmp_path: Path, broker: AnyBroker) -> AsyncIterator[KafkaBus]:
    async with kafka_bus(tmp_path, broker) as started:
        yield started
