"""The rules of every event bus, on each broker."""

import pytest

from tests.suites.eventbus import EventBusSuite

pytestmark = pytest.mark.integration


class TestKafkaBus(EventBusSuite):
    pass
