"""Starting processes that never outlive the supervisor.

Children are forked from the preloaded supervisor, so imports are paid for once. Two things end
them when the supervisor is killed: the kernel's parent-death signal where there is one (Linux),
and everywhere the end of a pipe whose writing side only the supervisor holds.
"""

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from setproctitle import setproctitle

ORPHAN_GRACE_S = 10.0
_PR_SET_PDEATHSIG = 1


class ParentWatch:
    """A pipe that closes when the supervisor dies, however it dies."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def enter_child(self) -> None:
        """In a fresh child: end this process soon after the supervisor is gone."""
        os.close(self._writer)
        threading.Thread(target=self._wait, name="parent-watch", daemon=True).start()

    def _wait(self) -> None:
        os.read(self._reader, 1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_GRACE_S)
        os._exit(1)


def fork_python(name: str, target: Callable[[], None], log_file: Path, watch: ParentWatch) -> int:
    """Run `target` in a forked child whose output goes to `log_file`; returns its pid."""
    _flush()
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _become_child(name, log_file, supervisor, signal.SIGTERM)
        watch.enter_child()
        target()
        code = 0
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:  # noqa: BLE001 - the last frame of the process
        _print_trace()
    finally:
        _flush()
        os._exit(code)


def fork_exec(name: str, command: Sequence[str], log_file: Path) -> int:
    """Run a program in a forked child whose output goes to `log_file`; returns its pid."""
    _flush()
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        _become_child(name, log_file, supervisor, signal.SIGKILL)
        os.execv(command[0], [f"sluice: {name}", *command[1:]])  # noqa: S606 - no shell wanted
    except BaseException:  # noqa: BLE001 - the last frame of the process
        _print_trace()
    finally:
        _flush()
        os._exit(127)


def _become_child(name: str, log_file: Path, supervisor: int, on_orphan: signal.Signals) -> None:
    os.setsid()  # Ctrl-C reaches the supervisor only, which stops children in order
    _die_with_parent(on_orphan)
    if os.getppid() != supervisor:
        os._exit(1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with suppress(OSError):  # no log can be made: what it says goes where the supervisor's goes
        output = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
    setproctitle(f"sluice: {name}")


def _die_with_parent(number: signal.Signals) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def _print_trace() -> None:
    with suppress(OSError, ValueError):
        traceback.print_exc()


def _flush() -> None:
    """Never raises: a child that cannot write its log must still reach its own end."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
