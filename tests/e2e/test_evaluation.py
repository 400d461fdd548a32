"""Search finds what it found before, on a small set, through everything a document passes."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

from tests.e2e.stack import Stack

pytestmark = pytest.mark.e2e

HANDBOOK = Path(__file__).parents[1] / "sets" / "handbook"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("evaluation") / "home")
    stack.start()
    yield stack
    stack.stop()


def test_search_is_no_worse_than_it_was(stack: Stack, tmp_path: Path) -> None:
    now, baseline = tmp_path / "now.json", HANDBOOK / "baseline.json"
    ended = stack.cli(
        "eval", "retrieval", str(HANDBOOK), "--baseline", str(baseline), "--save", str(now)
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(now.read_text())["retrieval"]
    # Far below what is measured, and far above what a lost channel would leave.
    assert mean(figures["mrr@10"] for figures in found.values()) > 0.85
    assert mean(figures["recall@5"] for figures in found.values()) > 0.95


def test_what_people_ask_in_their_own_words_is_not_declined(stack: Stack, tmp_path: Path) -> None:
    ended = stack.cli("eval", "refusals", str(HANDBOOK), "--report-to", str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    row = next(
        line
        for line in (tmp_path / "report.md").read_text().splitlines()
        if line.startswith("| handbook | as it is, all questions |")
    )
    assert float(row.split("|")[4].split()[0]) <= 0.05  # of the answerable questions
