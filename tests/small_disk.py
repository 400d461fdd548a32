"""A small disk of its own, so that a test can fill it for real."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class SmallDisk:
    folder: Path

    @property
    def free_bytes(self) -> int:
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"

    def fill(self, *, leave_bytes: int = 0) -> None:
        """Take all the room there is but `leave_bytes`."""
        with self._filler.open("ab", buffering=0) as filler:
            for block_bytes in (1_000_000, 4096, 1):
                try:
                    while self.free_bytes >= leave_bytes + block_bytes:
                        filler.write(bytes(block_bytes))
                except OSError:
                    continue

    def make_room(self) -> None:
        self._filler.unlink()

    def make_read_only(self, *, read_only: bool = True) -> None:
        """Nobody may have a file open for writing."""
        _run("mount", "-o", f"remount,{'ro' if read_only else 'rw'}", str(self.folder))


@contextmanager
def small_disk(folder: Path, size_mb: int) -> Iterator[SmallDisk]:
    """A memory file system at `folder`; the test is skipped where none may be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(folder))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a full disk needs the right to mount one")
    try:
        yield SmallDisk(folder)
    finally:
        _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
