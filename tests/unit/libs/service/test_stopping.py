"""How a process ends when it is told to."""

import signal
import subprocess
import sys

import pytest

DRAINS = """
import asyncio, sys
from libs.service.stopping import run, stopping

async def main():
    print("started", flush=True)
    await stopping().wait()
    print("draining", flush=True)
    await asyncio.sleep(float(sys.argv[1]))
    print("drained", flush=True)

run(main, "test", log_level="ERROR")
"""


@pytest.mark.parametrize(
    ("number", "drains_s", "last_words"),
    [(signal.SIGTERM, 0.5, ["drained"]), (signal.SIGINT, 60, [])],
)
def test_told_twice_it_drains_all_the_same_unless_somebody_presses_ctrl_c_again(
    number: signal.Signals, drains_s: float, last_words: list[str]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DRAINS, str(drains_s)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "draining\n"
        process.send_signal(number)
        assert process.stdout.read().split() == last_words
    assert process.returncode == 0
