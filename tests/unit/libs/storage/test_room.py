"""What the stores say of a disk that takes no writes: that it is the disk, and of which kind."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from libs.kernel import DiskError, TransientError
from libs.storage.keywords import TantivyKeywords
from libs.storage.objects import DiskObjectStore
from libs.storage.objects.blocks import blocks
from libs.storage.room import Room, error_in_words, file_error
from tests.suites.search_index import row


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("number", "full"),
    [
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EFBIG, True),
        (errno.EROFS, False),
        (errno.EACCES, False),
        (errno.EPERM, False),
        (errno.EIO, False),
    ],
)
def test_a_disk_error_names_the_disk(number: int, full: bool) -> None:
    error = file_error(OSError(number, os.strerror(number)), "a file")
    assert isinstance(error, DiskError)
    assert (error.missing, error.full) == ("disk", full)


def test_other_errors_of_files_are_not_blamed_on_the_disk() -> None:
    assert file_error(OSError(errno.EMFILE, "Too many open files"), "x").missing == ""
    assert error_in_words("RPC error: permission denied for this user").missing == ""


def test_a_librarys_text_is_enough() -> None:
    full = error_in_words("IoError: No space left on device (os error 28) at path /x")
    fixed = error_in_words("[Errno 30] Read-only file system: 'wal'")
    assert isinstance(full, DiskError)
    assert isinstance(fixed, DiskError)
    assert (full.full, fixed.full) == (True, False)


def test_the_reserve_is_not_for_new_things(tmp_path: Path) -> None:
    Room(tmp_path).check()
    free_bytes = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    half = Room(tmp_path, free_bytes // 2)
    half.check(wanted_bytes=free_bytes // 4)
    with pytest.raises(DiskError, match="no room") as caught:
        half.check(wanted_bytes=free_bytes)
    assert caught.value.full


def test_a_folder_that_is_not_there_yet_lacks_nothing(tmp_path: Path) -> None:
    Room(tmp_path / "later").check()


def test_a_folder_that_cannot_be_written_lacks_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)  # root may write everywhere
    with pytest.raises(DiskError, match="cannot be written") as caught:
        Room(tmp_path).check()
    assert not caught.value.full


@pytest.mark.parametrize(("number", "full"), [(errno.ENOSPC, True), (errno.EROFS, False)])
async def test_the_object_store_names_the_disk_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, full: bool
) -> None:
    def fsync(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    store = DiskObjectStore(tmp_path)
    await store.put("t/old", b"old")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(DiskError) as caught:
        await store.write("t/old", blocks(b"new"))
    assert caught.value.full is full
    assert await store.get("t/old") == b"old"
    assert [path.name for path in files_in(tmp_path)] == ["old"]
    monkeypatch.undo()
    await store.write("t/old", blocks(b"new"))
    assert await store.get("t/old") == b"new"


@pytest.mark.parametrize(("number", "full"), [(errno.ENOSPC, True), (errno.EROFS, False)])
async def test_the_keyword_index_waits_for_a_folder_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, full: bool
) -> None:
    def mkdir(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    index = TantivyKeywords(tmp_path / "keywords", writes=True)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", mkdir)
        with pytest.raises(DiskError) as caught:
            await index.ensure("k")
        assert caught.value.full is full
    await index.ensure("k")
    await index.upsert("k", [row("c", "text")])
    assert await index.count("k", "t") == 1
    await index.close()


async def test_a_keyword_writer_that_failed_without_a_word_asks_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "meta.json").write_text("no index")
    index = TantivyKeywords(tmp_path, writes=True)
    with pytest.raises(TransientError) as caught:
        await index.upsert("k", [row("c", "text")])
    assert caught.value.missing == ""
    monkeypatch.setattr(Room, "lack", lambda _room, _wanted_bytes: DiskError("no room"))
    with pytest.raises(DiskError):
        await index.upsert("k", [row("c", "text")])
    await index.close()
