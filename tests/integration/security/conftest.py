"""The HTTP services as one, with the gateway's unit stage in front."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.security.api import Api, running_api
from tests.unit.services.gateway.conftest import Stage, settings, stage

__all__ = ["settings", "stage"]


@pytest.fixture
async def api(stage: Stage, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(stage, tmp_path / "objects") as api:
        yield api
