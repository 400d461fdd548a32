"""The data folder: made private, owned by one supervisor at a time."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from libs.storage.room import disk_error


class HomeError(Exception):
    """The data folder cannot be used; the message says why and what to do."""


def claim(home: Path) -> TextIO:
    """Create the folder and lock it; keep the returned file open while the stack runs.

    Raises: HomeError.
    """
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "logs").mkdir(exist_ok=True, mode=0o700)
        lock = (home / "lock").open("a+")
    except OSError as exc:
        raise _unusable(home, exc) from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        lock.close()
        raise HomeError(
            f"{home} is in use by a running stack (pid {owner}): stop it, or set SLUICE_HOME and "
            "the ports to run a second one"
        ) from exc
    with suppress(OSError):  # a full disk: the lock counts, the pid is only for people
        os.ftruncate(lock.fileno(), 0)
        os.write(lock.fileno(), f"{os.getpid()}\n".encode())
    return lock


def _unusable(home: Path, exc: OSError) -> HomeError:
    why = f"cannot use the data folder {home.absolute()} ({exc.strerror})"
    error = disk_error(exc, str(home))
    if error is not None and error.full:
        return HomeError(
            f"{why}: free some space on its disk, or set SLUICE_HOME to another folder"
        )
    return HomeError(f"{why}: make it writable, or set SLUICE_HOME to a folder that can be written")
