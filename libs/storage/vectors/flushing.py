"""When rows leave the brute-force buffer of Milvus Lite for the index."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from libs.kernel import TransientError, end_tasks, set_within

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """Rows are durable and findable unflushed, but searching 20 000 of them takes 0.7 s.

    A flush follows `rows` buffered rows, or `idle_s` without a write; never more often, as each
    one makes a segment.
    """

    rows: int = 1_000
    idle_s: float = 2.0


@dataclass(slots=True)
class _Buffer:
    rows: int = 0
    written_at: float = 0.0
    full: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Flusher:
    """Calls `flush(name)` some time after writes; a failed flush is tried with the next one."""

    def __init__(self, flush: Callable[[str], Awaitable[None]], policy: FlushPolicy) -> None:
        self._flush = flush
        self._policy = policy
        self._buffers: dict[str, _Buffer] = {}

    def wrote(self, name: str, rows: int) -> None:
        buffer = self._buffers.setdefault(name, _Buffer())
        buffer.rows += rows
        buffer.written_at = asyncio.get_running_loop().time()
        if buffer.rows >= self._policy.rows:
            buffer.full.set()
        if buffer.task is None or buffer.task.done():
            buffer.task = asyncio.create_task(self._drain(name, buffer))

    def forget(self, name: str) -> None:
        """The collection is going: nothing of it is flushed any more."""
        buffer = self._buffers.pop(name, None)
        if buffer is not None and buffer.task is not None:
            buffer.task.cancel()

    async def close(self) -> None:
        """Flush what is buffered now."""
        for name, buffer in self._buffers.items():
            if buffer.task is not None:
                await end_tasks(buffer.task)
            if buffer.rows:
                await self._try_flush(name)

    async def _drain(self, name: str, buffer: _Buffer) -> None:
        loop = asyncio.get_running_loop()
        while buffer.rows:
            wait_s = buffer.written_at + self._policy.idle_s - loop.time()
            if wait_s > 0 and not buffer.full.is_set():
                await set_within(buffer.full, wait_s)
                continue
            buffer.full.clear()
            buffer.rows = 0
            await self._try_flush(name)

    async def _try_flush(self, name: str) -> None:
        try:
            await self._flush(name)
        except TransientError as exc:
            log.warning("vector_flush_failed", collection=name, error=str(exc))
