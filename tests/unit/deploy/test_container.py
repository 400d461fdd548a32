"""The first process of a container and its health check, as processes."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.deploy.repository import ROOT

CONTAINER = ROOT / "deploy" / "container"


async def started(program: str, folder: Path, **env: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, str(CONTAINER / program), "argument"),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)} | env,
        stdout=asyncio.subprocess.PIPE,
    )


def service(folder: Path, code: str) -> None:
    """A service `sample` with this code, where a container has its services."""
    (folder / "services" / "sample").mkdir(parents=True)
    (folder / "services" / "sample" / "__main__.py").write_text(code)


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def test_a_service_runs_as_the_main_module_with_its_arguments(tmp_path: Path) -> None:
    service(tmp_path, "import sys; print(__name__, __spec__.name, sys.argv[1:]); sys.exit(3)")
    process = await started("start.py", tmp_path, SLUICE_SERVICE="sample")
    assert await line(process) == "__main__ services.sample.__main__ ['argument']"
    assert await process.wait() == 3


async def test_a_stop_while_it_still_imports_ends_it_at_once(tmp_path: Path) -> None:
    service(tmp_path, "import time; print('importing', flush=True); time.sleep(60)")
    process = await started("start.py", tmp_path, SLUICE_SERVICE="sample")
    assert await line(process) == "importing"
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        assert await process.wait() == 0


@pytest.fixture
async def answering() -> Callable[[str], Awaitable[str]]:
    """Something that answers every request with one text; gives its port."""

    async def serve(answer: str) -> str:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {answer}".encode())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        return str(server.sockets[0].getsockname()[1])

    return serve


@pytest.mark.parametrize(
    ("answer", "code"), [("200 OK\r\n\r\nready", 0), ("503 Away\r\n\r\nmissing kafka", 1), ("x", 1)]
)
async def test_the_health_check_says_what_the_service_says(
    answering: Callable[[str], Awaitable[str]], tmp_path: Path, answer: str, code: int
) -> None:
    port = await answering(answer)
    process = await started("ready.py", tmp_path, SLUICE_HEALTH_PORT=port)
    said = await line(process)
    assert await process.wait() == code
    assert answer.rpartition("\n")[2] in said or "no answer" in said


async def test_a_service_that_does_not_answer_is_not_healthy(tmp_path: Path) -> None:
    process = await started("ready.py", tmp_path, SLUICE_HEALTH_PORT="1")
    assert (await line(process)).startswith("no answer")
    assert await process.wait() == 1
