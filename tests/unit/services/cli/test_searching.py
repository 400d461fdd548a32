"""`sluice search`: what is asked, and what is shown of the reasons."""

import json
import time
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.unit.services.cli.conftest import ScriptedPlatform

CHANNEL = {"rank": 2, "raw": 0.871, "score": 0.64, "floor": 0.45, "passed": True, "adds": 0.5}
EXPLAINED: dict[str, Any] = {
    "hits": [
        {
            "document_name": "rules.md",
            "page": None,
            "text": "The hit itself.",
            "heading_path": [],
            "scores": {"fused": 0.7, "vector": 0.64},
            "duplicate_of": "d2.1.c4",
            "neighbours": [
                {"position": -1, "text": "What stands before it."},
                {"position": 1, "text": "What stands after it."},
            ],
            "explanation": {
                "rank": 1,
                "fused_rank": 3,
                "channels": {"vector": CHANNEL},
                "matched_terms": [{"term": "报销", "weight": 3.14}],
            },
        }
    ],
    "explanation": {
        "terms": [{"term": "报销", "weight": 3.14}],
        "matching_documents": 2,
        "channels": {
            "vector": {"found": 50, "dropped": {"stale": 7}, "below_floor": 9, "floor": 0.45}
        },
        "near_copies": 1,
        "rerank": {"model": "judge", "reranked": 0, "error": "no answer in time"},
        "gate": {"passed": False, "coverage": 0.2, "nearest": 0.64, "needed": 1.15, "reason": ""},
        "seconds": {"vector": 0.012},
    },
}


def test_options_become_filters(platform: type[ScriptedPlatform]) -> None:
    platform.answers = {"POST /v1/search": (200, b'{"hits": []}')}
    narrowed = ["--tag", "hr", "--tag", "2026", "--document", "d1", "--domain", "law"]
    times = ["--after", "2026-01-31T08:00:00+08:00", "--before", "2026-03-01T00:00:00+00:00"]
    CliRunner().invoke(app, ["search", "x", *narrowed, *times, "--neighbours", "2", "--explain"])
    asked = json.loads(platform.bodies[0])
    filters = asked["filters"]
    assert (filters["tags"], filters["document_ids"]) == (["hr", "2026"], ["d1"])
    assert filters["created_after"].endswith(("+08:00", "+00:00"))
    assert (asked["domains"], asked["neighbours"], asked["explain"]) == (["law"], 2, True)


def test_a_date_from_before_time_zones_is_sent_without_seconds_of_an_offset(
    platform: type[ScriptedPlatform], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.answers = {"POST /v1/search": (200, b'{"hits": []}')}
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Asia/Shanghai")  # 8:05:43 before 1901
        time.tzset()
        CliRunner().invoke(app, ["search", "x", "--after", "1900-01-01"])
    time.tzset()
    filters = json.loads(platform.bodies[0])["filters"]
    assert filters["created_after"] == "1899-12-31T15:54:17+00:00"


def test_what_is_no_time_is_refused_with_an_example(platform: type[ScriptedPlatform]) -> None:
    result = CliRunner().invoke(app, ["search", "x", "--after", "yesterday"])
    assert result.exit_code == 2
    assert "2026-01-31" in result.stderr
    assert platform.bodies == []


@pytest.mark.parametrize(
    "said",
    [
        "-1 What stands before it.",
        "+1 What stands after it.",
        "says the same as d2.1.c4",
        "vector: rank 2, 0.871 → 0.64, passes the floor 0.45, adds 0.50",
        "terms: 报销 3.1; fused rank 3",
        "documents that match the filters: 2",
        "vector: 50 found, 7 stale, 9 below the floor 0.45",
        "near-copies put below others: 1",
        "judge: no answer in time",
        "would be declined",
        "0.84 of 1.15",
    ],
)
def test_reasons_are_shown(platform: type[ScriptedPlatform], said: str) -> None:
    platform.answers = {"POST /v1/search": (200, json.dumps(EXPLAINED).encode())}
    assert said in CliRunner().invoke(app, ["search", "x", "--explain"]).stdout
