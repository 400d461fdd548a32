"""Generated requests against every operation of the OpenAPI documents: good, bad and odd ones."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.security import known_ids
from tests.integration.security.api import Api, running_api
from tests.unit.services.gateway.conftest import Stage, db, settings, stage

__all__ = ["db", "settings", "stage"]
pytestmark = pytest.mark.integration

_ROOT = Path(__file__).parents[3]
_CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,response_headers_conformance"
)


@pytest.fixture
async def api(stage: Stage, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(stage, tmp_path / "objects") as api:
        yield api


async def schemathesis(url: str, key: str, ids: str, *options: str) -> str:
    """What schemathesis has to say against the API; "" when nothing."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{url}/openapi.json",
        *("--header", f"X-API-Key: {key}" if key else "X-Nobody: 1"),
        *("--checks", _CHECKS, "--warnings", "off", "--no-color"),
        *("--request-timeout", "20"),
        *("--generation-with-security-parameters", "false"),
        *options,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=_ROOT,
        env={**os.environ, "SCHEMATHESIS_HOOKS": known_ids.__name__, known_ids.KNOWN: ids},
    )
    said, _ = await process.communicate()
    return "" if process.returncode == 0 else said.decode()


@pytest.mark.parametrize("role", ["admin", "reader", ""])
async def test_every_answer_of_the_gateway_is_documented(api: Api, role: str) -> None:
    ids = await api.known_ids(await api.key("admin"))
    key = await api.key(role) if role else ""
    options = os.environ.get("ST_OPTIONS", "--max-examples 10 --generation-deterministic").split()
    problems = await schemathesis(api.gateway_url, key, ids, *options)
    open("/tmp/st-" + (role or "none"), "w").write(problems)
    assert not problems
