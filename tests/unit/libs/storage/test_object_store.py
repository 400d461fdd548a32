"""The object stores: the shared behaviour on a disk and on MinIO, and what only files can do."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.kernel import TransientError
from libs.storage.objects import DiskObjectStore
from libs.storage.objects.blocks import blocks
from libs.storage.objects.s3 import S3ObjectStore
from libs.storage.objects.s3_access import S3Policy
from tests.servers.minio import MinioServer, bucket_on
from tests.suites.object_store import ObjectStoreSuite


@pytest.fixture
def store(tmp_path: Path) -> DiskObjectStore:
    return DiskObjectStore(tmp_path / "objects")


class TestDiskObjectStore(ObjectStoreSuite):
    pass


@pytest.mark.on_server
class TestS3ObjectStore(ObjectStoreSuite):
    @pytest.fixture
    async def store(self, minio: MinioServer) -> AsyncIterator[S3ObjectStore]:
        async with bucket_on(minio, S3Policy(page_keys=50)) as store:
            yield store


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_nothing_is_written_outside_the_folder(tmp_path: Path) -> None:
    store = DiskObjectStore(tmp_path / "objects")
    await store.put("t/..%2f..%2fescape", b"x")
    await store.put("t/..x", b"x")
    assert all(path.is_relative_to(tmp_path / "objects") for path in files_in(tmp_path))


async def test_emptied_folders_go(store: DiskObjectStore, tmp_path: Path) -> None:
    await store.put("t/d/1/text.txt", b"x")
    await store.delete_prefix("t/")
    assert not (tmp_path / "objects" / "t").exists()


async def test_a_full_disk_is_transient_and_leaves_nothing(tmp_path: Path) -> None:
    class FullDisk(DiskObjectStore):
        def _open_temporary(self):  # type: ignore[no-untyped-def]
            file = super()._open_temporary()
            file.write = _no_space  # type: ignore[method-assign, assignment]
            return file

    store = FullDisk(tmp_path)
    with pytest.raises(TransientError, match="No space left"):
        await store.write("t/k", blocks(b"data"))
    assert files_in(tmp_path) == []


def _no_space(_: bytes) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_the_sweep_takes_crashed_writers_files_and_no_others(
    store: DiskObjectStore, tmp_path: Path
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"first "
        started.set()
        await go_on.wait()
        yield b"second"

    writer = asyncio.create_task(store.write("t/slow", slow()))
    await started.wait()
    temporary = tmp_path / "objects" / ".tmp"
    crashed = temporary / "left-by-a-crash"
    crashed.write_bytes(b"half")
    for path in temporary.iterdir():
        os.utime(path, (0, 0))
    assert await store.sweep() == 1
    assert not crashed.exists()
    go_on.set()
    assert await writer == 12
    assert await store.get("t/slow") == b"first second"


async def test_a_cancelled_write_leaves_nothing(store: DiskObjectStore, tmp_path: Path) -> None:
    started = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            started.set()

    writer = asyncio.create_task(store.write("t/k", endless()))
    await started.wait()
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer
    assert files_in(tmp_path) == []
