"""A small soak: a file, a task or a row more with every document or turn would show."""

from pathlib import Path

import pytest

from tests.soak import report
from tests.soak.run import SMALL, run

pytestmark = pytest.mark.e2e


async def test_nothing_grows_with_the_documents_and_turns_that_went_through(tmp_path: Path) -> None:
    outcome = await run(1, SMALL, tmp_path / "home")
    assert outcome.good, f"{report.table(outcome)}\n{report.faults(outcome)}"
