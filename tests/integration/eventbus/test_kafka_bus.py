"""The rules of every event bus, on the embedded broker."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.eventbus.kafka_bus import KafkaBus, kafka_bus
from tests.suites.eventbus import EventBusSuite, recorder

__all__ = ["recorder"]

pytestmark = pytest.mark.integration


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[KafkaBus]:
    async with kafka_bus(tmp_path) as started:
        yield started


class TestKafkaBus(EventBusSuite):
    pass
