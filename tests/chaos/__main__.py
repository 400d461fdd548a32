"""Kills whatever there is while documents and questions come in, then counts.

    python -m tests.chaos [--seeds 1,2,3] [--small]

Ends with 1 when anything was lost, doubled, stuck or wrong; the folder is then kept and named.
"""

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos import report
from tests.chaos.run import FULL, SMALL, run


def main() -> int:
    options = argparse.ArgumentParser(description="The chaos test.")
    options.add_argument("--seeds", default="1", help="comma-separated numbers")
    options.add_argument("--small", action="store_true", help="the size that the suite runs")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the stack is stopped then, too
    rows, bad = [], 0
    for seed in map(int, chosen.seeds.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="sluice-chaos-"))
        outcome = asyncio.run(run(seed, SMALL if chosen.small else FULL, folder / "home"))
        print(report.schedule(outcome), flush=True)
        rows.append(report.row(outcome))
        if outcome.findings.faults:
            bad += 1
            print(f"{report.faults(outcome)}\nkept: {folder}", flush=True)
        else:
            shutil.rmtree(folder)
        print(f"\n{report.HEADER}\n" + "\n".join(rows), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
