"""A small seeded chaos run; `make chaos` runs the full one."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.run import SMALL, SMALL_ON_SERVERS, Outcome, run
from tests.servers.full import full_size

pytestmark = pytest.mark.e2e
SEED = 20


async def test_nothing_is_lost_doubled_or_stuck_when_processes_are_killed(tmp_path: Path) -> None:
    check(await run(SEED, SMALL, tmp_path / "home"))


@pytest.mark.on_server
def test_nor_when_the_servers_are_killed_too(tmp_path: Path) -> None:
    with full_size(tmp_path / "servers") as servers:
        check(asyncio.run(run(SEED, SMALL_ON_SERVERS, tmp_path / "home", servers)))


def check(outcome: Outcome) -> None:
    assert not outcome.findings.faults, f"{report.schedule(outcome)}\n{report.faults(outcome)}"
    assert all(entry.ids for entry in outcome.ledger.all_documents)
    assert all(entry.seen.ended for entry in outcome.ledger.turns)
