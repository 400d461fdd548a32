"""One child process, its line protocol, and the watch over its memory and time."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

_ROOT = Path(__file__).parents[4]
WORKER = "services.ingest.parser.worker"
GOING_ON = {"going_on": True}  # another page is begun: not stuck, only long
_MEMORY_CHECK_S = 0.1
_BYTES_PER_S = 50_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one file. A breach kills the child, not the service."""

    timeout_s: float = 600.0  # of a large file
    small_timeout_s: float = 120.0  # of an empty one; each 50 kB grant one second more
    max_rss_bytes: int = 1_500_000_000
    max_chars: int = 10_000_000
    files_per_child: int = 200  # then it is replaced, so that leaks stay small
    idle_s: float = 60.0  # a child without work this long ends: it holds some 300 MB
    niceness: int = 10
    ocr: bool = True
    picture_s: float = 180.0  # granted anew for each scanned page; one takes 5 s on an idle core
    max_pictures: int = 1000  # recognised in one file

    def time_for(self, size_bytes: int) -> float:
        """Seconds for a file of this size: few bytes need not be worth ten minutes."""
        return min(self.timeout_s, self.small_timeout_s + size_bytes / _BYTES_PER_S)


class ChildDiedError(Exception):
    """The child ended without an answer: it crashed or was killed."""


class MemoryLimitError(Exception):
    """The child used more memory than allowed and was killed."""


class Child:
    """Reads one file at a time. After any error it is dead; cancelling a call kills it."""

    def __init__(self, process: asyncio.subprocess.Process, limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._seen = psutil.Process(process.pid)
        self.files = 0
        self.failed = False  # killed, or about to be

    @classmethod
    async def start(cls, limits: Limits, worker: str = WORKER) -> "Child":
        """A child that runs the module `worker`."""
        path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            worker,
            str(os.getpid()),
            str(limits.niceness),
            str(limits.max_rss_bytes),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        return cls(process, limits)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, task: dict[str, Any], size_bytes: int = 0) -> dict[str, Any]:
        """The child's answer about a file of this size.

        Raises: TimeoutError, MemoryLimitError, ChildDiedError.
        """
        self.files += 1
        deadline = asyncio.timeout(self._limits.time_for(size_bytes))
        exchange = asyncio.create_task(self._exchange(task, deadline))
        try:
            async with deadline:
                await self._watch(exchange)
            return exchange.result()
        except BaseException:
            exchange.cancel()
            self.failed = True
            self.kill()
            raise

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    async def close(self) -> None:
        """Kill and reap."""
        self.kill()
        await self._process.wait()

    async def _watch(self, exchange: asyncio.Task[Any]) -> None:
        while not exchange.done():
            if self._rss_bytes() > self._limits.max_rss_bytes:
                raise MemoryLimitError
            await asyncio.wait({exchange}, timeout=_MEMORY_CHECK_S)

    async def _exchange(self, task: dict[str, Any], deadline: asyncio.Timeout) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ChildDiedError
        try:
            stdin.write(json.dumps(task).encode() + b"\n")
            await stdin.drain()
            answer: dict[str, Any] = json.loads(await stdout.readline())
            while answer == GOING_ON:
                at_least = asyncio.get_running_loop().time() + self._limits.picture_s
                deadline.reschedule(max(deadline.when() or 0.0, at_least))
                answer = json.loads(await stdout.readline())
        except (OSError, ValueError) as exc:  # a broken pipe, or an answer cut off
            raise ChildDiedError from exc
        return answer

    def _rss_bytes(self) -> int:
        try:
            return int(self._seen.memory_info().rss)
        except psutil.Error:
            return 0  # it just ended: the exchange tells
