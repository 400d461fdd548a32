"""One server for tests: its programs, its folder, its process."""

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest

from tests.ports import free_port

_PR_SET_PDEATHSIG = 1


class MissingServerError(Exception):
    """The server can't be had on this machine; the text says what to do about it."""


def cache_folder() -> Path:
    """Where downloads and prepared data are kept between runs."""
    return Path(os.environ.get("SLUICE_TEST_CACHE", "~/.cache/sluice-tests")).expanduser()


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` in the cache; `make(folder)` fills it, once, whoever else asks meanwhile.

    Put versions into the name: what was made is never made again.
    """
    folder = cache_folder() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            new = folder.parent / f"{folder.name}.new"
            shutil.rmtree(new, ignore_errors=True)  # somebody was interrupted
            new.mkdir()
            make(new)
            new.rename(folder)
    return folder


def program(*names: str, install: str) -> str:
    """The first of these programs that is there. Raises: MissingServerError."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise MissingServerError(f"no {' or '.join(names)} on PATH: {install}")


def download(command: Sequence[str], *, within_s: float = 900.0) -> None:
    """Run a package manager. Raises: MissingServerError with the end of what it said."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=within_s, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise MissingServerError(f"{command[0]}: {exc}") from exc
    if done.returncode:
        raise MissingServerError(f"{' '.join(command[:3])}: {(done.stderr or done.stdout)[-500:]}")


class Server(ABC):
    """A server on a loopback port with a data folder of its own.

    It can be stopped, killed, frozen and started again, at the same address with the same data.
    """

    name: ClassVar[str]
    ready_within_s: ClassVar[float] = 60.0
    stops_within_s: ClassVar[float] = 20.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def provide(self) -> None:
        """Get the programs and prepare `folder`. Raises: MissingServerError."""

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """What is started, in `folder`. It must stay in the foreground and listen on loopback."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Ask the server itself, not only its port. May raise OSError while it is not there."""

    def environment(self) -> Mapping[str, str]:
        """Variables beside those of the tests."""
        return {}

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def start(self) -> None:
        """Start the process and wait until it is ready. Raises: AssertionError with its log.

        Call it on the main thread: the server ends with the thread that started it.
        """
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the process and wait for nothing."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(part) for part in self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **self.environment()},
                start_new_session=True,  # the whole family is stopped and killed
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )

    def wait_ready(self) -> None:
        """Raises: AssertionError when it ended or takes too long, with the end of its log."""
        until = time.monotonic() + self.ready_within_s
        while not self._asked():
            assert self._process is not None, f"{self.name} was not started"
            assert self._process.poll() is None, f"{self.name} ended:\n{self._last_words()}"
            assert time.monotonic() < until, f"{self.name} isn't ready:\n{self._last_words()}"
            time.sleep(0.05)

    def stop(self) -> None:
        """End it in good order, or else by force."""
        self._signal(signal.SIGTERM)
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self.stops_within_s)
        self.kill()

    def kill(self) -> None:
        """End it at once, with no chance to save anything."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    @property
    def ended(self) -> bool:
        """It was started, and ended by itself or by a signal that was not ours."""
        return self._process is not None and self._process.poll() is not None

    def freeze(self) -> None:
        """It keeps its connections and answers nothing until `thaw`."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _asked(self) -> bool:
        try:
            return self.is_ready()
        except OSError:
            return False

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


AnyServer = TypeVar("AnyServer", bound=Server)


@contextlib.contextmanager
def running(server: AnyServer) -> Iterator[AnyServer]:
    """The server, ready; stopped at the end. A missing one skips the test, or fails it in CI."""
    with launched(server):
        server.wait_ready()
        yield server


@contextlib.contextmanager
def launched(server: AnyServer) -> Iterator[AnyServer]:
    """As `running`, without waiting: for servers that wait for each other."""
    server.folder.mkdir(parents=True, exist_ok=True)
    try:
        server.provide()
    except MissingServerError as exc:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up(f"{server.name} is missing: {exc}")
    try:
        server.launch()
        yield server
    finally:
        server.thaw()
        server.stop()
