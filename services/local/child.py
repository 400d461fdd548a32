"""One supervised process: start, restart with backoff, stop."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FIRST_DELAY_S = 0.5
MAX_DELAY_S = 30.0
STABLE_S = 30.0  # a run at least this long counts as healthy and resets the delay
MAX_LOG_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How to start a process. `spawn` gets the log file and returns the pid."""

    name: str
    spawn: Callable[[Path], int]


class Child:
    """A process that is started again when it ends, unless it is told to stop."""

    def __init__(self, spec: ChildSpec, logs: Path) -> None:
        self.name = spec.name
        self.log_file = logs / f"{spec.name}.log"
        self.pid: int | None = None
        self.restarts = 0
        self._spawn = spec.spawn
        self._delay_s = FIRST_DELAY_S
        self._started_at = 0.0
        self._start_at = 0.0

    def start(self, now: float) -> None:
        _rotate(self.log_file)
        self._started_at = now
        self.pid = self._spawn(self.log_file)

    def start_if_due(self, now: float) -> bool:
        """Start a process that ended once its backoff is over; True when it started."""
        if self.pid is not None or now < self._start_at:
            return False
        self.restarts += 1
        self.start(now)
        return True

    def exited(self, now: float) -> float:
        """Note that the process ended; returns the seconds until it is started again."""
        if now - self._started_at >= STABLE_S:
            self._delay_s = FIRST_DELAY_S
        delay_s = self._delay_s
        self._delay_s = min(self._delay_s * 2, MAX_DELAY_S)
        self.pid = None
        self._start_at = now + delay_s
        return delay_s

    def signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def sweep_group(pid: int) -> None:
    """End what a finished process may have left in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _rotate(log_file: Path) -> None:
    with suppress(OSError):  # a disk that cannot do it must not keep the process from starting
        if log_file.exists() and log_file.stat().st_size > MAX_LOG_BYTES:
            log_file.replace(log_file.with_suffix(".log.1"))
