"""A pool of embedding processes that loses and replaces its members without losing its head."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from libs.kernel import TransientError

_WORKER: Final = Path(__file__).with_name("embedding_worker.py")
_SLICE: Final = 4  # texts per request; larger ones gain little and answer late
_READ_LIMIT: Final = 2**20


class EmbeddingPool:
    """`size` single-threaded processes at the lowest priority, started when first needed.

    PR_SET_PDEATHSIG is tied to the thread that starts a process: use a pool from the event loop
    that made it.
    """

    def __init__(self, size: int, dimension: int) -> None:
        self._dimension = dimension
        self._idle: asyncio.Queue[Process | None] = asyncio.Queue()  # None: a place to be filled
        for _ in range(size):
            self._idle.put_nowait(None)
        self._processes: set[Process] = set()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, dimension) in order. Raises: TransientError when a process died at it."""
        slices = [texts[i : i + _SLICE] for i in range(0, len(texts), _SLICE)]
        if not slices:
            return np.empty((0, self._dimension), dtype=np.float32)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._embed_slice(part)) for part in slices]
        except ExceptionGroup as group_error:
            raise group_error.exceptions[0] from group_error
        return np.concatenate([task.result() for task in tasks])

    async def close(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*(process.wait() for process in self._processes))
        self._processes.clear()

    async def _embed_slice(self, texts: Sequence[str]) -> NDArray[np.float32]:
        process = await self._idle.get()
        healthy: Process | None = None
        try:
            if process is not None and process.returncode is not None:
                self._discard(process)  # it died at rest
                process = None
            process = process or await self._start()
            vectors = await self._exchange(process, texts)
            healthy = process
        except (OSError, asyncio.IncompleteReadError) as exc:
            raise TransientError("an embedding process died at its work") from exc
        finally:
            # Cancelled half-way, a process would answer the wrong question next: replace it.
            if healthy is None and process is not None:
                self._discard(process)
            self._idle.put_nowait(healthy)
        return vectors

    async def _exchange(self, process: Process, texts: Sequence[str]) -> NDArray[np.float32]:
        assert process.stdin is not None  # noqa: S101 both are pipes
        assert process.stdout is not None  # noqa: S101
        process.stdin.write(json.dumps(list(texts)).encode() + b"\n")
        await process.stdin.drain()
        data = await process.stdout.readexactly(len(texts) * self._dimension * 4)
        return np.frombuffer(data, dtype=np.float32).reshape(len(texts), self._dimension)

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # this folder's modules must not shadow the standard library
            str(_WORKER),
            str(os.getpid()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            limit=_READ_LIMIT,
        )
        self._processes.add(process)
        return process

    def _discard(self, process: Process) -> None:
        self._processes.discard(process)
        if process.returncode is None:
            process.kill()
