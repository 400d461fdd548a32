"""A hostile file kills its child only, in time, and is refused with a reason."""

import asyncio
import errno
import io
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from libs.kernel import DiskError, PermanentError
from libs.storage.objects.blocks import blocks
from libs.storage.room import Room
from services.ingest.parser.adapters.child import Limits
from services.ingest.parser.adapters.pool import ParserPool, open_pool
from services.ingest.parser.ports import Parsed, ParseRequest
from tests.small_disk import MB, small_disk
from tests.waiting import is_gone, until

HOSTILE = "tests.integration.parser.hostile_worker"
LIMITS = Limits(timeout_s=60, max_rss_bytes=300_000_000, niceness=0)


async def parse(
    pool: ParserPool, name: str, media_type: str = "", *, urgent: bool = False
) -> Parsed:
    return await pool.parse(blocks(b"content"), ParseRequest(name, media_type, urgent=urgent))


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def scratch_folders() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"sluice-parse-{os.getpid()}-*"))


@pytest.fixture
async def pool() -> AsyncIterator[ParserPool]:
    before = children()  # servers that tests share
    async with open_pool(1, LIMITS, worker=HOSTILE) as pool:
        yield pool
    assert children() <= before


async def test_a_child_is_used_again_and_replaced_in_time() -> None:
    async with open_pool(1, Limits(files_per_child=2), worker=HOSTILE) as pool:
        pids = [(await parse(pool, "good")).char_count for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_an_idle_child_ends() -> None:
    async with open_pool(1, Limits(idle_s=0.05), worker=HOSTILE) as pool:
        pid = (await parse(pool, "good")).char_count
        await until(lambda: is_gone(pid))
        assert (await parse(pool, "good")).char_count != pid


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("crash", "parser-crashed"),
        ("eat", "out-of-memory"),
        ("eat-at-once", "out-of-memory"),
        ("garbage", "parser-crashed"),
    ],
)
async def test_the_file_is_refused_and_the_pool_goes_on(
    pool: ParserPool, name: str, reason: str
) -> None:
    await parse(pool, "good")
    with pytest.raises(PermanentError) as caught:
        await parse(pool, name)
    assert caught.value.reason == reason
    assert (await parse(pool, "good")).files.text == b"content"


async def test_a_file_that_takes_too_long_is_refused() -> None:
    async with open_pool(1, Limits(timeout_s=0.5), worker=HOSTILE) as pool:
        with pytest.raises(PermanentError, match="parse-timeout"):
            await parse(pool, "hang")


async def test_a_small_file_gets_less_time_than_a_large_one() -> None:
    limits = Limits(timeout_s=60, small_timeout_s=0.5)
    assert (limits.time_for(1_000_000), limits.time_for(10**9)) == (20.5, 60)
    async with open_pool(1, limits, worker=HOSTILE) as pool:
        with pytest.raises(PermanentError, match="parse-timeout"):
            await parse(pool, "hang")


async def test_killed_children_leave_no_scratch(pool: ParserPool) -> None:
    for name in ("crash", "eat", "garbage"):
        with pytest.raises(PermanentError):
            await parse(pool, name)
    assert scratch_folders() == []


async def test_a_child_killed_from_outside_costs_nothing(pool: ParserPool, tmp_path: Path) -> None:
    parsed = await parse(pool, "crash-once", str(tmp_path / "crashed"))
    assert parsed.files.text == b"content"
    os.kill(parsed.char_count, signal.SIGKILL)
    assert (await parse(pool, "good")).char_count != parsed.char_count


async def test_a_bug_in_the_child_is_a_bug_here(pool: ParserPool) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        await parse(pool, "bug")


async def test_cancelling_kills_the_child_at_once(pool: ParserPool, tmp_path: Path) -> None:
    pid = (await parse(pool, "good")).char_count
    task = asyncio.create_task(parse(pool, "hang", str(tmp_path / "begun")))
    await until((tmp_path / "begun").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, timeout=60)
    await until(lambda: is_gone(pid))


async def test_urgent_files_do_not_wait_behind_others(pool: ParserPool) -> None:
    slow = asyncio.create_task(parse(pool, "hang"))
    parsed = await asyncio.wait_for(parse(pool, "good", urgent=True), timeout=60)
    assert parsed.files.text == b"content"
    assert not slow.done()
    slow.cancel()
    await asyncio.wait({slow})


@pytest.mark.skipif(sys.platform != "linux", reason="needs the parent-death signal")
async def test_children_die_with_their_parent() -> None:
    script = (
        "import asyncio, sys\n"
        "from services.ingest.parser.adapters.child import Child, Limits\n"
        "async def main():\n"
        "    child = await Child.start(Limits())\n"
        "    print(child._process.pid, flush=True)\n"
        "    await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)  # noqa: ASYNC220
    assert parent.stdout is not None
    child_pid = int(await asyncio.to_thread(parent.stdout.readline))
    parent.kill()
    parent.wait()
    await until(lambda: is_gone(child_pid))


async def test_a_child_without_room_does_not_blame_the_file(pool: ParserPool) -> None:
    with pytest.raises(DiskError, match="No space left") as caught:
        await parse(pool, "no-room")
    assert caught.value.full
    assert await parse(pool, "good")


async def test_without_room_a_refusal_proves_nothing(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Room, "lack", lambda _room, _wanted_bytes: DiskError("no room"))
        with pytest.raises(DiskError):
            await parse(pool, "damaged")
    with pytest.raises(PermanentError, match="corrupt"):
        await parse(pool, "damaged")


async def test_a_temporary_folder_without_room_is_named_with_its_setting(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "mkdtemp", lambda *_: full())
        with pytest.raises(DiskError, match="TMPDIR"):
            await parse(pool, "good")
    assert await parse(pool, "good")


LONG_TEXT = ("So much text. " * 300_000).encode()


def _zipped() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("short.txt", "A word.")
        archive.writestr("long.txt", LONG_TEXT)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "leave_bytes"),
    [
        pytest.param("a.txt", LONG_TEXT, MB, id="the upload's copy does not fit"),
        pytest.param("a.txt", LONG_TEXT, 5 * MB, id="what is read from it does not fit"),
        pytest.param("a.zip", _zipped(), 2 * MB, id="what is packed in it does not fit"),
    ],
)
async def test_a_file_that_finds_no_room_beside_it_is_read_when_there_is(
    tmp_path: Path, name: str, data: bytes, leave_bytes: int
) -> None:
    request = ParseRequest(name, "")
    with small_disk(tmp_path / "scratch", size_mb=40) as disk, _scratch_in(disk.folder):
        async with open_pool(1, Limits(niceness=0)) as pool:
            disk.fill(leave_bytes=leave_bytes)
            with pytest.raises(DiskError):
                await pool.parse(blocks(data), request)
            disk.make_room()
            parsed = await pool.parse(blocks(data), request)
            assert parsed.char_count > 4_000_000
            assert parsed.warning_count == 0


@contextmanager
def _scratch_in(folder: Path) -> Iterator[None]:
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


async def test_each_page_that_is_recognised_grants_time() -> None:
    limits = Limits(timeout_s=8, picture_s=30, niceness=0)
    async with open_pool(1, limits, worker=HOSTILE) as pool:
        assert (await parse(pool, "slow-pages")).char_count
