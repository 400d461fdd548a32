"""A disk that is really full: a clear error, nothing lost, and all goes on when there is room."""

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import func, select

from libs.kernel import DiskError, TransientError
from libs.storage.keywords import TantivyKeywords
from libs.storage.objects import DiskObjectStore
from libs.storage.ports import IndexRow
from libs.storage.room import Room
from libs.storage.sql import Database, api_keys, open_database
from libs.storage.sql.tables import api_keys as keys_table
from libs.storage.vectors import MilvusVectors
from services.local.vector_server import GROWTH_BYTES
from tests.ports import free_port
from tests.small_disk import MB, SmallDisk, small_disk
from tests.waiting import eventually

pytestmark = pytest.mark.integration

NAME = "chunks_v1"
DIMENSION = 384


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size_mb=48) as disk:
        yield disk


async def make_key(db: Database) -> None:
    async with db.work() as sql:
        await api_keys.create(sql, "t", role="member", name="k" * 100)


async def make_keys(db: Database, count: int) -> None:
    for _ in range(count):
        await make_key(db)


async def count_keys(db: Database) -> int:
    async with db.reading() as sql:
        return int(await sql.scalar(select(func.count()).select_from(keys_table)))


def rows(document_id: str, count: int, *, seed: int = 1) -> list[IndexRow]:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        IndexRow(
            f"{document_id}-{number}",
            "t",
            document_id,
            1,
            "",
            vector=vector,
            terms=[document_id, *(f"w{number}x{place}" for place in range(50))],
        )
        for number, vector in enumerate(vectors)
    ]


async def test_sql_refuses_reads_on_and_writes_again(disk: SmallDisk) -> None:
    db = open_database(f"sqlite+aiosqlite:///{disk.folder / 'sluice.db'}")
    await db.create_schema()
    await make_key(db)
    disk.fill()
    with pytest.raises(DiskError) as caught:
        await make_keys(db, 1000)  # the log has some room of its own left
    assert caught.value.full
    written = await count_keys(db)
    late = open_database(f"sqlite+aiosqlite:///{disk.folder / 'sluice.db'}")
    assert await count_keys(late) == written
    disk.make_room()
    await make_key(db)
    assert await count_keys(late) == written + 1
    for each in (db, late):
        await each.close()


async def test_a_new_database_waits_for_room(disk: SmallDisk) -> None:
    db = open_database(f"sqlite+aiosqlite:///{disk.folder / 'sluice.db'}")
    disk.fill()
    with pytest.raises(DiskError):
        await db.create_schema()
    disk.make_room()
    await db.create_schema()
    assert await count_keys(db) == 0
    await db.close()


async def test_objects_are_whole_or_not_there(disk: SmallDisk) -> None:
    objects = DiskObjectStore(disk.folder / "objects")
    await objects.put("t/old", b"old")
    disk.fill(leave_bytes=MB)
    for key in ("t/old", "t/new"):
        with pytest.raises(DiskError) as caught:
            await objects.put(key, bytes(4 * MB))
        assert caught.value.full
    assert await objects.keys("") == ["t/old"]
    assert await objects.get("t/old") == b"old"
    assert list((disk.folder / "objects" / ".tmp").iterdir()) == []
    disk.make_room()
    await objects.put("t/new", bytes(4 * MB))
    assert len(await objects.get("t/new")) == 4 * MB


async def test_the_keyword_index_finds_what_it_has_and_writes_again(disk: SmallDisk) -> None:
    index = TantivyKeywords(disk.folder, writes=True)
    await index.ensure(NAME)
    await index.upsert(NAME, rows("old", 20))
    disk.fill()
    for count in (10, 3000):  # small: its commit fails; large: its threads die on the way
        with pytest.raises(DiskError):
            await index.upsert(NAME, rows("new", count))
        assert await index.count(NAME, "t") == 20
    with pytest.raises(DiskError):
        await index.ensure("another")
    disk.make_room()
    await index.upsert(NAME, rows("new", 3000))
    assert await index.count(NAME, "t", "new") == 3000
    assert len(await index.search(NAME, "t", ["old"], 50)) == 20
    await index.ensure("another")
    await index.close()


async def test_stores_on_a_read_only_disk_name_it_and_write_when_it_is_writable_again(
    disk: SmallDisk,
) -> None:
    objects = DiskObjectStore(disk.folder / "objects")
    await objects.put("t/old", b"old")
    before = TantivyKeywords(disk.folder, writes=True)
    await before.ensure(NAME)
    await before.upsert(NAME, rows("old", 20))
    await before.close()
    disk.make_read_only()
    index = TantivyKeywords(disk.folder, writes=True)
    db = open_database(f"sqlite+aiosqlite:///{disk.folder / 'sluice.db'}")
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: objects.put("t/new", b"new"),
        lambda: index.upsert(NAME, rows("new", 10)),
        lambda: index.ensure("another"),
        db.create_schema,
    ]
    for attempt in attempts:
        with pytest.raises(DiskError) as caught:
            await attempt()
        assert not caught.value.full
    assert Room(disk.folder).lack() is not None
    assert await objects.get("t/old") == b"old"
    disk.make_read_only(read_only=False)
    assert Room(disk.folder).lack() is None
    for attempt in attempts:
        await attempt()
    assert await index.count(NAME, "t") == 30
    await index.close()
    await db.close()


class Server:
    """The vector server as the local stack runs it."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self._folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        serve = "from services.local.embedded import serve_milvus; serve_milvus"
        what = f"from pathlib import Path; {serve}(Path({str(self._folder)!r}), {self._port})"
        self.process = subprocess.Popen([sys.executable, "-c", what])

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait(timeout=30)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@contextmanager
def running(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def server(disk: SmallDisk) -> Iterator[Server]:
    with running(Server(disk.folder / "milvus")) as server:
        yield server


@pytest.fixture
async def vectors(server: Server) -> AsyncIterator[MilvusVectors]:
    vectors = MilvusVectors(server.uri, DIMENSION)
    await eventually(lambda: vectors.ensure(NAME), on=TransientError)
    yield vectors
    await vectors.close()


async def test_vectors_that_were_taken_survive_a_flush_without_room(
    disk: SmallDisk, vectors: MilvusVectors
) -> None:
    await vectors.upsert(NAME, rows("old", 50))
    disk.fill()
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: vectors.upsert(NAME, rows("new", 10)),
        lambda: vectors.flush(NAME),
        lambda: vectors.delete(NAME, "t", "old"),
    ]
    for attempt in attempts:
        with pytest.raises(DiskError) as caught:
            await attempt()
        assert caught.value.full
    assert len(await vectors.search(NAME, "t", _vector(rows("old", 1)[0]), 5)) == 5
    disk.make_room()
    await vectors.upsert(NAME, rows("new", 10))
    await vectors.flush(NAME)
    assert await vectors.count(NAME, "t", "old") == 50
    assert await vectors.count(NAME, "t", "new") == 10


async def test_a_vector_server_that_could_not_write_to_the_end_starts_anew_with_all_it_had(
    disk: SmallDisk, server: Server, vectors: MilvusVectors
) -> None:
    await vectors.upsert(NAME, rows("old", 50))
    disk.fill(leave_bytes=GROWTH_BYTES + MB)  # looks like enough, and is not
    with pytest.raises(TransientError):
        await vectors.upsert(NAME, rows("large", 16_000))
    assert server.wait() == 1
    disk.make_room()
    server.start()
    await eventually(lambda: vectors.ensure(NAME), on=TransientError)
    await vectors.upsert(NAME, rows("new", 10))
    await vectors.flush(NAME)
    assert await vectors.count(NAME, "t", "old") == 50
    assert await vectors.count(NAME, "t", "new") == 10


def _vector(row: IndexRow) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    assert row.vector is not None
    return row.vector
