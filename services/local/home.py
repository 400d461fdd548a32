"""The data folder: made private, owned by one supervisor at a time."""

import fcntl
import os
from pathlib import Path
from typing import TextIO


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
        raise HomeError(
            f"cannot use the data folder {home} ({exc.strerror}): set SLUICE_HOME to a folder "
            "that can be written"
        ) from exc
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
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock
