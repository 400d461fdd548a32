"""Kills whatever there is while documents and questions come in, then counts.

    python -m tests.chaos [--seeds 1,2,3] [--small] [--full]

With `--full` the platform stands on full-size servers (`tests/servers`), which are killed too, and
two processes of every worker share the work.

Ends with 1 when anything was lost, doubled, stuck or wrong; the folder is then kept and named.
"""

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.run import LARGE, LARGE_ON_SERVERS, SMALL, SMALL_ON_SERVERS, Outcome, run
from tests.servers.full import full_size


def main() -> int:
    options = argparse.ArgumentParser(description="The chaos test.")
    options.add_argument("--seeds", default="1", help="comma-separated numbers")
    options.add_argument("--small", action="store_true", help="the size that the suite runs")
    options.add_argument("--full", action="store_true", help="on full-size servers")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the stack is stopped then, too
    rows, bad = [], 0
    for seed in map(int, chosen.seeds.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="sluice-chaos-"))
        try:
            outcome = _run(seed, folder, small=chosen.small, full=chosen.full)
        except pytest.skip.Exception as exc:
            options.error(str(exc))
        print(report.schedule(outcome), flush=True)
        rows.append(report.row(outcome))
        if outcome.findings.faults:
            bad += 1
            print(f"{report.faults(outcome)}\nkept: {folder}", flush=True)
        else:
            shutil.rmtree(folder)
        print(f"\n{report.HEADER}\n" + "\n".join(rows), flush=True)
    return 1 if bad else 0


def _run(seed: int, folder: Path, *, small: bool, full: bool) -> Outcome:
    home = folder / "home"
    if not full:
        return asyncio.run(run(seed, SMALL if small else LARGE, home))
    size = SMALL_ON_SERVERS if small else LARGE_ON_SERVERS
    with full_size(folder / "servers") as servers:
        return asyncio.run(run(seed, size, home, servers))


if __name__ == "__main__":
    sys.exit(main())
