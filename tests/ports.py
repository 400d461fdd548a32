"""Ports for servers that tests start, stop and start again.

They lie below those that systems give to connections, and one process has each at a time: whatever
other tests do meanwhile, a port stays its server's while that is not running.
"""

import fcntl
import os
import random
import socket
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TextIO

_FOLDER = Path(tempfile.gettempdir()) / f"sluice-test-ports-{os.getuid()}"
_FIRST, _LAST = 10_000, 19_000
_held: list[TextIO] = []  # locked as long as this process lives


def free_port() -> int:
    return free_range(1)


def free_range(count: int) -> int:
    """The first of so many free ports in a row."""
    _FOLDER.mkdir(exist_ok=True)
    chance = random.SystemRandom()  # other processes begin with the same seed
    while True:
        first = chance.randrange(_FIRST, _LAST - count)
        with ExitStack() as claims, suppress(OSError):
            for port in range(first, first + count):
                _held.append(claims.enter_context((_FOLDER / str(port)).open("w")))
                fcntl.flock(_held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            claims.pop_all()
            return first
