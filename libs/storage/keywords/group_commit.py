"""Writes of many callers in one commit: a commit costs tens of milliseconds, a row nothing."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import tantivy

from libs.kernel import DiskError, TransientError
from libs.storage.keywords.queries import SCHEMA, row_key, rows_of, to_document
from libs.storage.ports import IndexRow
from libs.storage.room import Room, error_in_words, file_error

META: Final = "meta.json"  # what makes a folder an index
_HEAP_BYTES: Final = 32_000_000


def is_index(folder: Path) -> bool:
    return (folder / META).exists()


@dataclass(frozen=True, slots=True)
class Upsert:
    rows: Sequence[IndexRow]

    def apply(self, writer: Any) -> None:
        for row in self.rows:
            writer.delete_documents_by_term("row", row_key(row.tenant, row.chunk_id))
            writer.add_document(to_document(row))


@dataclass(frozen=True, slots=True)
class Delete:
    tenant: str
    document_id: str
    generations: range | None

    def apply(self, writer: Any) -> None:
        writer.delete_documents_by_query(rows_of(self.tenant, self.document_id, self.generations))


@dataclass(slots=True)
class GroupCommit:
    """The one writer of an index folder; `write` returns once its change is on disk.

    Changes that arrive while a commit runs share the next one.
    """

    folder: Path
    _writer: Any = None
    _waiting: list[tuple[Upsert | Delete, asyncio.Future[None]]] = field(default_factory=list)
    _committing: asyncio.Task[None] | None = None
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="keywords-writer")
    )

    async def make(self) -> None:
        """Open the writer of the index, made first if it is not there.

        Raises: TransientError when another process holds the writer; DiskError.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._made)

    async def write(self, change: Upsert | Delete) -> None:
        """Raises: TransientError when the folder cannot be written; DiskError."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit_all())
        await done

    async def close(self) -> None:
        if self._committing is not None:
            await self._committing
        await asyncio.get_running_loop().run_in_executor(self._thread, self._release)
        self._thread.shutdown()

    async def _commit_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, self._waiting = self._waiting, []
            changes = [change for change, _ in group]
            error = await loop.run_in_executor(self._thread, self._commit, changes)
            for _, done in group:
                if done.cancelled():
                    continue
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(error)

    def _made(self) -> None:
        if self._writer is None:
            self._writer = self._open()

    def _opened(self) -> Any:
        if self._writer is None:
            if not is_index(self.folder):
                raise TransientError(f"there is no keyword index {self.folder}")
            self._writer = self._open()
        return self._writer

    def _open(self) -> Any:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return tantivy.Index(SCHEMA, str(self.folder)).writer(_HEAP_BYTES, 1)
        except OSError as exc:
            raise file_error(exc, f"keyword index {self.folder}") from exc
        except ValueError as exc:
            if "LockBusy" in str(exc):
                raise TransientError(
                    f"keyword index {self.folder} is being written by another process: "
                    "only one indexer may own it"
                ) from exc
            raise self._failure(f"cannot be opened: {exc}") from exc

    def _commit(self, changes: Sequence[Upsert | Delete]) -> Exception | None:
        try:
            writer = self._opened()
            for change in changes:
                change.apply(writer)
            writer.commit()
        except (ValueError, OSError) as exc:
            # A writer that failed once stays broken, so the next change opens a new one.
            self._release()
            return self._failure(f"cannot be written: {exc}")
        except Exception as exc:  # noqa: BLE001 whoever waits for this commit must learn of it
            self._release()
            return exc
        return None

    def _failure(self, text: str) -> TransientError:
        """A writer whose threads died says no more than that: then the disk is asked."""
        error = error_in_words(f"keyword index {self.folder} {text}")
        if isinstance(error, DiskError):
            return error
        return Room(self.folder).lack(_HEAP_BYTES) or error  # a commit may write that much

    def _release(self) -> None:
        self._writer = None  # dropping it gives the lock back; nothing uncommitted survives
