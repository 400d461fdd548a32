"""Generated requests against every operation of the OpenAPI documents: good, bad and odd ones.

`SLUICE_SCHEMATHESIS` replaces the options that keep it short, e.g. by `--max-examples 200`.
"""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from tests.integration.gateway.serving import served
from tests.integration.security import schemathesis_hooks
from tests.integration.security.api import Api

pytestmark = pytest.mark.integration

_ROOT = Path(__file__).parents[3]
_SHORT = "--phases fuzzing --max-examples {} --generation-deterministic --no-shrink"
_CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,response_headers_conformance,error_is_a_problem"
)


async def schemathesis(url: str, key: str, ids: str, examples: int) -> str:
    """What schemathesis has to say against the API; "" when nothing."""
    options = os.environ.get("SLUICE_SCHEMATHESIS", _SHORT.format(examples)).split()
    hooks = {"SCHEMATHESIS_HOOKS": schemathesis_hooks.__name__, schemathesis_hooks.KNOWN: ids}
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{url}/openapi.json",
        *("--header", f"X-API-Key: {key}" if key else "X-Nobody: 1"),
        *("--checks", _CHECKS, "--warnings", "off", "--no-color", "--continue-on-failure"),
        *("--request-timeout", "20", "--generation-with-security-parameters", "false"),
        *options,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=_ROOT,
        env={**os.environ, **hooks},
    )
    said, _ = await process.communicate()
    return "" if process.returncode == 0 else said.decode()


async def test_every_answer_is_documented_and_every_error_is_a_problem(api: Api) -> None:
    admin, reader = await api.key("admin"), await api.key("reader")
    ids = await api.known_ids(admin)
    said = await asyncio.gather(
        schemathesis(api.gateway_url, admin, ids, 10),
        schemathesis(api.gateway_url, reader, ids, 5),
        schemathesis(api.gateway_url, "", ids, 3),
        schemathesis(api.ingest_url, admin, ids, 3),
    )
    assert not any(said), "\n".join(said)


async def test_an_answer_that_is_not_documented_is_found() -> None:
    app = FastAPI()

    @app.get("/teapot")
    async def teapot() -> JSONResponse:
        return JSONResponse({"detail": "short and stout"}, 418)

    async with served(app) as url:
        said = await schemathesis(url, "", "{}", 1)
    assert "[418]" in said
    assert "Undocumented" in said
    assert "error_is_a_problem" in said
