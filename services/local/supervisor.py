"""Starts the stack, keeps it running, stops it in order.

One thread and no event loop: every child is a fork of this process, and only a quiet parent can be
forked safely. What needs a loop (topics, schema, API key) runs in a short-lived child.
"""

import os
import signal
import time
from collections.abc import Iterable
from functools import partial
from types import FrameType

from services.local.child import Child, sweep_group
from services.local.console import StackConsole
from services.local.embedded import resident_mb
from services.local.logs import last_log_lines
from services.local.ports import accepts
from services.local.preload import SERVICES, VECTOR_SERVER, preload
from services.local.prepare import prepare
from services.local.quiet import is_quiet
from services.local.readiness import missing_parts
from services.local.settings import LocalSettings
from services.local.spawning import ParentWatch, fork_python
from services.local.stack import BROKER, MILVUS, embedded_children, service_children

TICK_S = 0.05
READY_POLL_S = 0.2
WATCH_POLL_S = 5.0


class Supervisor:
    """The embedded stack on one machine."""

    def __init__(self, settings: LocalSettings, console: StackConsole) -> None:
        self._settings = settings
        self._console = console
        self._watch = ParentWatch()
        self._logs = settings.home / "logs"
        self._embedded = embedded_children(settings, self._watch, self._logs)
        self._services = service_children(settings, self._watch, self._logs)
        self._prepare_pid: int | None = None
        self._prepare_at: float | None = None  # when to prepare next; None: nothing to prepare
        self._serving = False
        self._was_ready = False
        self._next_ready_check = 0.0
        self._next_broker_check = 0.0
        self._slow_since = time.monotonic()
        self._stop_requests = 0

    def run(self) -> None:
        """Blocks until SIGINT or SIGTERM, then stops everything."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_stop)
        os.environ.update(self._settings.child_environment())
        try:
            self._start()
            while not self._stop_requests:
                self._tick(time.monotonic())
                time.sleep(TICK_S)
        finally:
            self._stop()

    def _start(self) -> None:
        """Importing takes longest: what need not wait for all of it is started before."""
        embedded = {child.name: child for child in self._embedded}
        if broker := embedded.get(BROKER):
            broker.start(time.monotonic())
        self._start_preparing()
        if milvus := embedded.get(MILVUS):
            preload(VECTOR_SERVER)
            milvus.start(time.monotonic())
        preload(*SERVICES.values())
        self._console.done("libraries loaded")

    def _tick(self, now: float) -> None:
        self._reap(now)
        running = self._embedded + (self._services if self._serving else [])
        for child in running:
            if child.start_if_due(now) and child.name == BROKER:
                self._prepare_at = now  # its log and topics are gone
        self._prepare_when_due(now)
        if self._serving and now >= self._next_ready_check:
            self._check_ready(now)
        if self._settings.embeds_broker and now >= self._next_broker_check:
            self._next_broker_check = now + WATCH_POLL_S
            self._recycle_full_broker()

    def _reap(self, now: float) -> None:
        for pid, status in _ended_children():
            if pid == self._prepare_pid:
                self._prepared(status, now)
                continue
            for child in self._embedded + self._services:
                if child.pid == pid:
                    sweep_group(pid)
                    delay_s = child.exited(now)
                    self._console.failed(
                        f"{child.name} ended ({_describe(status)}), starts again in {delay_s:g} s",
                        child.log_file,
                        last_log_lines(child.log_file),
                    )

    def _prepare_when_due(self, now: float) -> None:
        due = self._prepare_at is not None and now >= self._prepare_at
        if not due or self._prepare_pid is not None:
            return
        if self._settings.embeds_broker and not accepts(self._settings.broker_port):
            return
        self._start_preparing()

    def _start_preparing(self) -> None:
        """It waits for the broker by itself."""
        self._prepare_at = None
        log_file = self._logs / "prepare.log"
        work = partial(prepare, self._settings)
        self._prepare_pid = fork_python("prepare", work, log_file, self._watch)

    def _prepared(self, status: int, now: float) -> None:
        self._prepare_pid = None
        if status != 0:
            self._prepare_at = now + 1.0
            lines = last_log_lines(self._logs / "prepare.log")
            self._console.failed(
                "setting up topics and tables failed, trying again",
                self._logs / "prepare.log",
                lines,
            )
            return
        if not self._serving:
            self._console.done("topics and tables are there")
            self._serving = True
            for child in self._services:
                child.start(now)

    def _check_ready(self, now: float) -> None:
        missing = missing_parts(self._settings.gateway_port)
        ready = not missing
        self._next_ready_check = now + (WATCH_POLL_S if ready else READY_POLL_S)
        if ready and not self._was_ready:
            self._console.banner(self._settings.gateway_url, self._settings.home)
        elif not ready and self._was_ready:
            self._slow_since = now
        if not ready and now - self._slow_since > 2.0:
            self._console.waiting(missing)
        self._was_ready = ready

    def _recycle_full_broker(self) -> None:
        for child in self._embedded:
            if child.name != BROKER or child.pid is None:
                continue
            used_mb = resident_mb(child.pid)
            bound_mb = self._settings.broker_max_mb
            if used_mb > 2 * bound_mb or (used_mb > bound_mb and is_quiet(self._settings)):
                self._console.note(f"recycling the broker at {used_mb:.0f} MB")
                child.signal(signal.SIGKILL)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stop_requests += 1

    def _stop(self) -> None:
        self._console.note("stopping")
        self._end(self._services, self._settings.stop_timeout_s)
        self._end(self._embedded, 5.0)
        if self._prepare_pid is not None:
            sweep_group(self._prepare_pid)
        self._console.done("stopped")

    def _end(self, children: Iterable[Child], timeout_s: float) -> None:
        waiting = {child.pid: child for child in children if child.pid is not None}
        for child in waiting.values():
            child.signal(signal.SIGTERM)
        asked = self._stop_requests
        deadline = time.monotonic() + timeout_s
        while waiting and time.monotonic() < deadline and self._stop_requests <= asked:
            for pid, _status in _ended_children():
                if waiting.pop(pid, None):
                    sweep_group(pid)
            time.sleep(TICK_S)
        for pid, child in waiting.items():
            self._console.note(f"{child.name} did not stop in time, killing it")
            sweep_group(pid)


def _ended_children() -> list[tuple[int, int]]:
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, os.waitstatus_to_exitcode(status)))


def _describe(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
