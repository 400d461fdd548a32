"""Readiness names the disk while uploads find no room, and no longer than that."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path

from libs.kernel import DiskError
from libs.service.health import Health
from libs.storage.room import Room
from services.ingest.api.room_watch import watch
from services.ingest.api.settings import IngestApiSettings
from tests.waiting import until


@dataclass
class Disk:
    full: bool = False


async def test_readiness_follows_the_disk(tmp_path: Path) -> None:
    disk, health, stop = Disk(), Health(), asyncio.Event()

    class Watched(Room):
        def lack(self, wanted_bytes: int = 0) -> DiskError | None:
            return DiskError("no room") if disk.full else super().lack(wanted_bytes)

    watching = asyncio.create_task(
        watch(Watched(tmp_path), health.reporter("room"), stop=stop, interval_s=0.01)
    )
    for full in (True, False, True, False):
        disk.full = full
        await until(lambda full=full: health.missing == (["disk"] if full else []))
    stop.set()
    await watching


def test_the_reserve_is_a_setting_in_megabytes(tmp_path: Path) -> None:
    settings = IngestApiSettings(home=tmp_path, min_free_mb=7)
    assert settings.room == Room(tmp_path, 7_000_000)
    free_mb = shutil.disk_usage(tmp_path).free // 1_000_000
    more = IngestApiSettings(home=tmp_path, min_free_mb=2 * free_mb).room
    assert more is not None
    assert more.lack() is not None


def test_the_disk_bounds_uploads_unless_files_and_rows_are_on_servers(tmp_path: Path) -> None:
    def room(s3: str | None, sql: str | None) -> Room | None:
        return IngestApiSettings(home=tmp_path, s3_endpoint=s3, database_url=sql).room

    s3, sql = "http://minio:9000", "mysql://sluice:pw@mysql/sluice"
    assert room(None, None) == room(s3, None) == room(None, sql) == Room(tmp_path, 200_000_000)
    assert room(s3, sql) is None
