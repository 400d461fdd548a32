"""A small seeded chaos run; `make chaos` runs the full one."""

from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.run import SMALL, run

pytestmark = pytest.mark.e2e
SEED = 20


async def test_nothing_is_lost_doubled_or_stuck_when_processes_are_killed(tmp_path: Path) -> None:
    outcome = await run(SEED, SMALL, tmp_path / "home")
    assert not outcome.findings.faults, f"{report.schedule(outcome)}\n{report.faults(outcome)}"
    assert all(entry.ids for entry in outcome.ledger.all_documents)
    assert all(entry.seen.ended for entry in outcome.ledger.turns)
