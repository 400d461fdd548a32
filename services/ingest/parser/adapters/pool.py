"""`DocumentParser` over a small pool of child processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from libs.documents.serialise import DocumentFiles
from libs.kernel import DiskError, PermanentError, TransientError
from libs.storage.room import Room
from services.ingest.parser.adapters.child import (
    WORKER,
    Child,
    ChildDiedError,
    Limits,
    MemoryLimitError,
)
from services.ingest.parser.adapters.scratch import scratch_folder, sweep_scratch
from services.ingest.parser.domain.refusals import refusal
from services.ingest.parser.domain.sniffing import safe_suffix
from services.ingest.parser.ports import Parsed, ParseRequest
from services.ingest.parser.worker import DOCUMENT_FILE, TEXT_FILE

log = structlog.get_logger(__name__)

# With less room than this, or than twice the file, a refusal proves nothing, a warning neither.
_SPARE_BYTES = 16_000_000


class ParserPool:
    """At most `size` children; each is started when first needed and replaced when it dies.

    One more is kept for urgent files. A file in whose child memory ran out or which crashed it
    gets a fresh child, since the damage may come from earlier files or from outside; what
    happens to a fresh child (a crash: to two of them) is the file's own fault.
    """

    def __init__(
        self, size: int, limits: Limits, *, tika_url: str | None = None, worker: str = WORKER
    ) -> None:
        """`tika_url` is a Tika server's; None: Tika's native build in the children."""
        self._limits = limits
        self.tika_url = tika_url
        self._worker = worker
        self._idle: list[Child] = []
        self._slots = asyncio.Semaphore(size)
        self._urgent_slot = asyncio.Semaphore(1)

    async def parse(self, source: AsyncIterator[bytes], request: ParseRequest) -> Parsed:
        async with self._urgent_slot if request.urgent else self._slots:
            with scratch_folder() as folder:
                path = folder / f"source{safe_suffix(request.name)}"
                await _save(source, path)
                size_bytes = path.stat().st_size
                task = {
                    "source": str(path),
                    "name": request.name,
                    "media_type": request.media_type,
                    "max_chars": self._limits.max_chars,
                    "out": str(folder),
                    "tika_url": self.tika_url,
                    "timeout_s": self._limits.time_for(size_bytes),
                    "picture_s": self._limits.picture_s,
                    "max_pictures": self._limits.max_pictures if self._limits.ocr else 0,
                }
                # Native code blames the file for what it could not unpack beside it.
                try:
                    answer = await self._answer(task, size_bytes)
                    parsed = await asyncio.to_thread(_parsed, answer, folder)
                except PermanentError as exc:
                    if lack := Room(folder).lack(max(_SPARE_BYTES, 2 * size_bytes)):
                        raise lack from exc
                    raise
                if parsed.warning_count:
                    Room(folder).check(_SPARE_BYTES)
                return parsed

    async def close(self) -> None:
        """Kill every child. Calls still running fail."""
        idle, self._idle = self._idle, []
        for child in idle:
            await child.close()

    async def _answer(self, task: dict[str, Any], size_bytes: int) -> dict[str, Any]:
        crashes_of_fresh = 0
        while True:
            async with self._child() as child:
                fresh = child.files == 0
                try:
                    return await child.ask(task, size_bytes)
                except TimeoutError as exc:
                    raise refusal("parse-timeout") from exc
                except MemoryLimitError:
                    reason = "out-of-memory"
                except ChildDiedError:
                    reason = "parser-crashed"
            log.warning("parser_child_lost", reason=reason, fresh=fresh, name=task["name"])
            crashes_of_fresh += fresh
            if crashes_of_fresh > (reason == "parser-crashed"):
                raise refusal(reason)

    @asynccontextmanager
    async def _child(self) -> AsyncIterator[Child]:
        child = self._idle.pop() if self._idle else await self._start()
        try:
            yield child
        finally:
            if not child.failed and child.alive and child.files < self._limits.files_per_child:
                self._idle.append(child)
                loop = asyncio.get_running_loop()
                loop.call_later(self._limits.idle_s, self._retire, child, child.files)
            else:
                await asyncio.shield(child.close())

    def _retire(self, child: Child, files: int) -> None:
        if child in self._idle and child.files == files:
            self._idle.remove(child)
            child.kill()

    async def _start(self) -> Child:
        try:
            return await Child.start(self._limits, self._worker)
        except OSError as exc:
            raise TransientError(f"no parser process could be started: {exc}") from exc


@asynccontextmanager
async def open_pool(
    size: int, limits: Limits, *, tika_url: str | None = None, worker: str = WORKER
) -> AsyncIterator[ParserPool]:
    """A pool whose children end with the block."""
    await asyncio.to_thread(sweep_scratch)
    pool = ParserPool(size, limits, tika_url=tika_url, worker=worker)
    try:
        yield pool
    finally:
        await pool.close()


def _parsed(answer: dict[str, Any], folder: Path) -> Parsed:
    if "refused" in answer:
        reason, detail = answer["refused"]
        raise PermanentError(reason, detail) if detail else refusal(reason)
    if "disk" in answer:
        text, full = answer["disk"]
        raise DiskError(text, full=full)
    if "away" in answer:
        text, missing = answer["away"]
        raise TransientError(text, missing=missing)
    if "bug" in answer:
        raise RuntimeError(answer["bug"])
    files = DocumentFiles((folder / DOCUMENT_FILE).read_bytes(), (folder / TEXT_FILE).read_bytes())
    return Parsed(files=files, **answer["parsed"])


async def _save(source: AsyncIterator[bytes], path: Path) -> None:
    with path.open("wb") as file:
        async for chunk in source:
            await asyncio.to_thread(file.write, chunk)
