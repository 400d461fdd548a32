"""Objects as files in one folder. Several processes may share the folder."""

import asyncio
import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from libs.kernel import NotFoundError
from libs.storage.objects.blocks import BLOCK_BYTES, blocks
from libs.storage.objects.paths import key_to_path, path_to_key
from libs.storage.room import file_error

PAGE = 5_000
_TMP = ".tmp"
_SWEEP_AGE_S = 60.0
_RENAME_TRIES = 5


class DiskObjectStore:
    """`ObjectStore` over a folder.

    A blob appears by one rename of a synced temporary file, so a reader sees the old value or
    the new one and a crash leaves neither half. No key may be the folder part of another key.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        target = self._path(key)
        with _writing(key):
            file = await asyncio.to_thread(self._open_temporary)
        try:
            size_bytes = 0
            async for chunk in chunks:
                size_bytes += len(chunk)
                with _writing(key):
                    await asyncio.to_thread(file.write, chunk)
            with _writing(key):
                await asyncio.to_thread(_publish, file, target)
        finally:
            _discard(file)
        return size_bytes

    async def put(self, key: str, data: bytes) -> None:
        await self.write(key, blocks(data))

    async def get(self, key: str) -> bytes:
        with _reading(key):
            return await asyncio.to_thread(self._path(key).read_bytes)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        path = self._path(key)
        with _reading(key):
            file = await asyncio.to_thread(path.open, "rb")
        try:
            while True:
                with _reading(key):
                    block = await asyncio.to_thread(file.read, BLOCK_BYTES)
                if not block:
                    return
                yield block
        finally:
            file.close()

    async def link(self, key: str, disposition: str, media_type: str) -> str | None:  # noqa: ARG002
        return None

    async def delete_prefix(self, prefix: str) -> int:
        with _reading(prefix):
            return await asyncio.to_thread(self._delete_prefix, prefix)

    async def keys(self, prefix: str) -> list[str]:
        with _reading(prefix):
            return await asyncio.to_thread(lambda: sorted(self._keys(prefix)))

    async def pages(self, prefix: str) -> AsyncIterator[list[str]]:
        found = self._keys(prefix)
        while page := await asyncio.to_thread(self._page, found, prefix):
            yield page

    async def sweep(self) -> int:
        """Remove what crashed writers left; returns how many files. Writers at work keep theirs."""
        with _reading(_TMP):
            return await asyncio.to_thread(self._sweep)

    def _path(self, key: str) -> Path:
        return self._root / key_to_path(key)

    def _open_temporary(self) -> IO[bytes]:
        folder = self._root / _TMP
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder)
        file = open(name, "w+b", opener=lambda *_: descriptor)  # noqa: SIM115 - closed by _discard
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # tells the sweep that its writer lives
        return file

    def _keys(self, prefix: str) -> Iterator[str]:
        folder = prefix.rpartition("/")[0]
        top = self._path(folder) if folder else self._root
        for directory, names, files in os.walk(top):
            if _TMP in names:
                names.remove(_TMP)
            for name in files:
                relative = (Path(directory) / name).relative_to(self._root)
                key = path_to_key(relative.as_posix())
                if key.startswith(prefix):
                    yield key

    def _page(self, found: Iterator[str], prefix: str) -> list[str]:
        with _reading(prefix):
            return list(islice(found, PAGE))

    def _delete_prefix(self, prefix: str) -> int:
        count = 0
        for key in list(self._keys(prefix)):
            path = self._path(key)
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                count += 1
            self._remove_empty(path.parent)
        return count

    def _remove_empty(self, folder: Path) -> None:
        while folder != self._root:
            try:
                folder.rmdir()
            except OSError:  # not empty, or another process was here first
                return
            folder = folder.parent

    def _sweep(self) -> int:
        count = 0
        for path in (self._root / _TMP).glob("*"):
            with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
                if time.time() - os.fstat(file.fileno()).st_mtime < _SWEEP_AGE_S:
                    continue
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
                count += 1
        return count


def _publish(file: IO[bytes], target: Path) -> None:
    file.flush()
    os.fsync(file.fileno())
    for last in (False,) * (_RENAME_TRIES - 1) + (True,):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            Path(file.name).replace(target)
            break
        except FileNotFoundError:  # a delete removed the empty folder in between
            if last:
                raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # already deleted again
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(file: IO[bytes]) -> None:
    with contextlib.suppress(OSError):
        Path(file.name).unlink()
    with contextlib.suppress(OSError):
        file.close()


@contextlib.contextmanager
def _reading(key: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as exc:
        raise NotFoundError(f"no object {key!r}") from exc
    except OSError as exc:
        raise file_error(exc, f"object store ({key!r})") from exc


@contextlib.contextmanager
def _writing(key: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise file_error(exc, f"object store ({key!r})") from exc
