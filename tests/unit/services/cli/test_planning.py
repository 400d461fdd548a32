"""`sluice plan`: shown, previewed and set."""

import json

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.unit.services.cli.conftest import ScriptedPlatform

PLAN = {
    "strategies": ["structure", "recursive"],
    "child_max_chars": 420,
    "table_max_chars": 900,
    "parent_max_chars": 2200,
    "parent_min_chars": 500,
    "reasons": ["looks like a policy", "3 headings on 2 levels: sections bound the parents"],
}
VIEW = {
    "state": "indexed",
    "generation": 2,
    "requested": {"child_max_chars": 300},
    "used": {**PLAN, "child_max_chars": 300},
    "recommended": PLAN,
}
CHUNK = {
    "ordinal": 0,
    "start": 0,
    "end": 17,
    "text": "员工应当守时",
    "heading_path": ["考勤"],
}
PREVIEW = {
    "generation": 2,
    "complete": False,
    "chars": 200_000,
    "plan": PLAN,
    "recommended": PLAN,
    "counts": {"parents": 12, "chunks": 90},
    "items": [CHUNK],
    "next": None,
}


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["plan", *arguments])
    return result.exit_code, result.output


def test_the_plan_in_force_stands_beside_the_recommended_one_with_its_reasons(
    platform: type[ScriptedPlatform],
) -> None:
    platform.answers = {"GET /v1/documents/d1/plan": (200, json.dumps(VIEW).encode())}
    code, output = invoke("d1")
    assert code == 0
    assert ["child_max_chars", "300", "420"] in [line.split() for line in output.splitlines()]
    assert "- looks like a policy" in output


def test_a_preview_shows_chunks_and_sets_nothing(platform: type[ScriptedPlatform]) -> None:
    preview = (200, json.dumps(PREVIEW).encode())
    platform.answers = {"POST /v1/documents/d1/plan/preview": preview}
    code, output = invoke("d1", "--preview", "--set", "strategies=structure, semantic")
    assert code == 0
    assert json.loads(platform.bodies[-1]) == {"strategies": ["structure", "semantic"]}
    assert "90 chunks in 12 parents, of the first 200000 characters" in output
    assert "员工应当守时" in output
    assert "考勤" in output


def test_set_overrides_and_reset_goes_back(platform: type[ScriptedPlatform]) -> None:
    waiting = {**VIEW, "state": "parsed", "used": None, "recommended": None}
    platform.answers = {"PUT /v1/documents/d1/plan": (202, json.dumps(waiting).encode())}
    code, output = invoke("d1", "--set", "child_max_chars=300", "--set", "table_max_chars=300")
    assert code == 0
    assert json.loads(platform.bodies[-1]) == {"child_max_chars": 300, "table_max_chars": 300}
    assert "to be cut by: child_max_chars=300" in output
    assert invoke("d1", "--reset")[0] == 0
    assert json.loads(platform.bodies[-1]) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--set", "size=3"),
        ("--set", "child_max_chars"),
        ("--set", "child_max_chars=few"),
        ("--reset", "--set", "child_max_chars=300"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    platform: type[ScriptedPlatform], arguments: tuple[str, ...]
) -> None:
    code, output = invoke("d1", *arguments)
    assert code == 2
    assert "--set" in output
    assert platform.seen == []
