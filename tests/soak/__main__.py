"""A day's work in minutes: does anything grow that should level off?

    python -m tests.soak [--seed 1] [--small]

Ends with 1 when something grows, or when anything was lost, doubled, stuck or wrong; the folder is
then kept and named.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak import report
from tests.soak.run import FULL, SMALL, run


def main() -> int:
    options = argparse.ArgumentParser(description="The soak test.")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--small", action="store_true", help="the size that the suite runs")
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sluice-soak-"))
    size = SMALL if chosen.small else FULL
    outcome = asyncio.run(run(chosen.seed, size, folder / "home", _tell))
    print(report.table(outcome), flush=True)
    if outcome.good:
        shutil.rmtree(folder)
        return 0
    print(f"{report.faults(outcome)}\nkept: {folder}", flush=True)
    return 1


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
