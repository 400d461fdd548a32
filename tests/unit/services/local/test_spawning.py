"""Children never outlive the supervisor, and `ps` shows which is which."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.waiting import is_gone

WAIT_S = 15.0

SUPERVISOR = """
import sys, time
from pathlib import Path
from services.local.spawning import ParentWatch, fork_exec, fork_python

def sleep_on():
    time.sleep(600)

watch = ParentWatch()
logs = Path(sys.argv[1])
print(fork_python("sleeper", sleep_on, logs / "sleeper.log", watch))
print(fork_exec("program", ["/bin/sleep", "600"], logs / "program.log"), flush=True)
time.sleep(600)
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(0.02)


@pytest.fixture
def family(tmp_path: Path) -> tuple["subprocess.Popen[str]", list[int]]:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert supervisor.stdout is not None
    return supervisor, [int(supervisor.stdout.readline()) for _ in range(2)]


def test_children_are_named_and_die_with_a_killed_supervisor(
    family: tuple["subprocess.Popen[str]", list[int]],
) -> None:
    supervisor, pids = family
    wait_until(lambda: psutil.Process(pids[0]).cmdline()[0] == "sluice: sleeper")
    wait_until(lambda: psutil.Process(pids[1]).cmdline()[0] == "sluice: program")
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.wait()
    wait_until(lambda: all(is_gone(pid) for pid in pids))


def test_ctrl_c_does_not_reach_children(
    family: tuple["subprocess.Popen[str]", list[int]],
) -> None:
    supervisor, pids = family
    wait_until(lambda: [os.getpgid(pid) for pid in pids] == pids)  # groups of their own
    supervisor.kill()
    supervisor.wait()


def test_an_error_in_a_child_ends_in_its_log_with_exit_code_1(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from services.local.spawning import ParentWatch, fork_python
def fail(): raise RuntimeError("no such thing")
pid = fork_python("failing", fail, Path(sys.argv[1]), ParentWatch())
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    log = tmp_path / "failing.log"
    result = subprocess.run(
        [sys.executable, "-c", script, str(log)], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "1"
    assert "RuntimeError: no such thing" in log.read_text()


WITHOUT_LOG = """
import os, sys
from pathlib import Path
from services.local.spawning import ParentWatch, fork_exec, fork_python

def work():
    print("worked", flush=True)
    sys.stdout = open("/dev/full", "w")
    print("what no disk takes")

watch = ParentWatch()
log = Path(sys.argv[1]) / "no such folder" / "log"
for pid in (
    fork_python("worker", work, log, watch),
    fork_exec("program", ["/bin/echo", "ran"], log),
):
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def test_a_child_without_a_log_works_says_it_to_the_supervisors_and_ends_as_itself(
    tmp_path: Path,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_LOG, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = sorted(ended.stdout.split())
    assert (said, ended.returncode) == (["0", "0", "ran", "worked"], 0), ended.stderr
