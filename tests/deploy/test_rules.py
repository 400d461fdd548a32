"""Alert rules and Prometheus' configuration under promtool, which is seen to find faults."""

from pathlib import Path

import pytest

from tests.deploy.repository import OBSERVABILITY
from tests.deploy.tools import run, tool

RULES = OBSERVABILITY / "rules" / "sluice.yml"
SCENARIOS = Path(__file__).with_name("scenarios.yml")


def test_promtool_finds_nothing_wrong() -> None:
    assert run(tool("promtool"), "check", "rules", RULES)[0] == 0
    config = OBSERVABILITY / "prometheus.yml"
    assert run(tool("promtool"), "check", "config", "--syntax-only", config)[0] == 0


def test_promtool_finds_a_planted_fault(tmp_path: Path) -> None:
    faulty = tmp_path / "rules.yml"
    faulty.write_text(
        RULES.read_text().replace("max by (group, topic) (", "max by (group, topic) ((", 1)
    )
    code, said = run(tool("promtool"), "check", "rules", faulty)
    assert code != 0
    assert "could not parse expression" in said


@pytest.mark.parametrize(("threshold", "passes"), [("> 0", True), ("> 1", False)])
def test_alerts_come_when_they_should_and_only_then(
    tmp_path: Path, threshold: str, passes: bool
) -> None:
    """The second case plants a threshold that is never reached: its alert is found missing."""
    rules, stalled = RULES.read_text(), "max by (group, topic) (group_stalled) "
    assert f"{stalled}> 0" in rules
    (tmp_path / "rules.yml").write_text(rules.replace(f"{stalled}> 0", stalled + threshold))
    scenarios = tmp_path / "scenarios.yml"
    scenarios.write_bytes(SCENARIOS.read_bytes())
    code, said = run(tool("promtool"), "test", "rules", scenarios)
    assert (code == 0) is passes, said
