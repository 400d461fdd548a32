"""The page in a real browser: whatever documents are called and say is text and runs nowhere."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from libs.storage.sql.tables import documents
from services.gateway.settings import GatewaySettings
from tests.integration.security.api import Api, running_api
from tests.unit.services.gateway.conftest import Stage

pytestmark = pytest.mark.integration

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
RUN = "document.title='owned'"
EVIL = f'<img src=x onerror="{RUN}"><script>{RUN}</script>[a](javascript:{RUN})'


@pytest.fixture
async def api(stage: Stage, tmp_path: Path) -> AsyncIterator[Api]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "api-key").write_text(stage.keys["acme"])
    stage.gateway = replace(stage.gateway, settings=GatewaySettings(home=home, local=True))
    async with running_api(stage, tmp_path / "objects") as api:
        yield api


async def test_names_and_reasons_are_text(api: Api, tmp_path: Path) -> None:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    async with api.client(api.stage.keys["acme"]) as client:
        await client.post("/v1/documents", files={"file": ("a.txt", b"a gate")})
    values = {"name": EVIL, "state": "failed", "reason": EVIL, "detail": EVIL}
    async with api.db.work() as sql:
        await sql.execute(update(documents).values(**values))
    browser = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *(f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=4000", "--dump-dom"),
        api.gateway_url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(60):
        said, _ = await browser.communicate()
    page = said.decode()
    assert page.count("&lt;img src=x onerror") >= 3, page[-3_000:]
    assert "<title>Sluice</title>" in page
    assert "<img" not in page
