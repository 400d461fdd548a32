"""Folders for files being read. What a killed parser left is removed by the next one."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from libs.storage.room import file_error

_PREFIX = "sluice-parse-"


@contextmanager
def scratch_folder(root: Path | None = None) -> Iterator[Path]:
    """An empty folder (below the system's temporary folder unless `root` says where).

    Raises: DiskError, also for what the block cannot write: nothing else is stored there.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", dir=root) as folder:
            yield Path(folder)
    except OSError as exc:
        where = root or tempfile.gettempdir()
        raise file_error(exc, f"temporary folder {where} (TMPDIR chooses another)") from exc


def sweep_scratch(root: Path | None = None) -> int:
    """Remove the folders of parsers that are no more; returns how many."""
    count = 0
    for folder in Path(root or tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
            count += 1
    return count
