"""`sluice eval` against a platform that answers from a script."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.unit.services.cli.conftest import ScriptedPlatform

TEXT = "The limit is 20,000 yuan. Approval takes three days."


def make_set(folder: Path, **change: Any) -> Path:
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "policy.txt").write_text(TEXT, encoding="utf-8")
    line = {
        "id": "q1",
        "question": "What is the limit?",
        "type": "factual",
        "references": [{"doc_id": "policy", "text": "The limit is 20,000 yuan.", "start": 0}],
    }
    (folder / "questions.jsonl").write_text(json.dumps(line | change) + "\n", encoding="utf-8")
    return folder


def hit(text: str, **scores: float) -> dict[str, Any]:
    shown = {"fused": None, "vector": None, "keyword": None, "graph": None, "rerank": None}
    place = {"document_id": "d1", "document_name": "policy.txt", "page": None}
    return {**place, "text": text, "scores": shown | scores}


WRONG, RIGHT = "Approval takes three days.", "The limit is 20,000 yuan."
HITS = [
    hit(WRONG, fused=0.8, vector=0.9, keyword=0.1),
    hit(RIGHT, fused=0.7, vector=0.5, keyword=1.0),
]


def document(name: str, **change: Any) -> tuple[int, bytes]:
    known = {"id": "d1", "state": "indexed", "name": "policy.txt", "domain": f"eval-{name}"}
    return 202, json.dumps(known | change).encode()


def ready(platform: type[ScriptedPlatform], name: str, **change: Any) -> None:
    upload = document(name, **change)
    platform.answers = {
        "POST /v1/documents": upload,
        "GET /v1/documents/d1": upload,
        "POST /v1/search": (200, json.dumps({"hits": HITS}).encode()),
    }


def rows_of(output: str) -> list[list[str]]:
    """The cells of the rows about the set."""
    return [re.split(r"\s{2,}", line) for line in output.splitlines() if line.startswith("demo")]


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["eval", *map(str, arguments)])


def test_each_channel_is_ranked_by_its_own_scores(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    ready(platform, "demo")
    result = run("retrieval", make_set(tmp_path / "demo"), "--save", tmp_path / "now.json")
    assert result.exit_code == 0, result.output
    mrr = {row[2]: row[5][:5] for row in rows_of(result.stdout) if row[1] == "1"}
    assert mrr == {"fused": "0.500", "vector": "0.500", "keyword": "1.000"}
    kept = json.loads((tmp_path / "now.json").read_text())["retrieval"]
    assert kept["demo/q1"]["mrr@10"] == 0.5
    asked = json.loads(platform.bodies[-1])
    assert (asked["query"], asked["domains"]) == ("What is the limit?", ["eval-demo"])


@pytest.mark.parametrize(("before", "code"), [(1.0, 1), (0.25, 0)])
def test_figures_worse_than_the_baseline_fail_the_command(
    platform: type[ScriptedPlatform], tmp_path: Path, before: float, code: int
) -> None:
    ready(platform, "demo")
    figures = dict.fromkeys(("recall@5", "recall@10", "mrr@10", "ndcg@10"), before)
    baseline = tmp_path / "before.json"
    baseline.write_text(json.dumps({"retrieval": {"demo/q1": figures}}))
    result = run("retrieval", make_set(tmp_path / "demo"), "--baseline", baseline)
    assert result.exit_code == code, result.output
    assert ("worse" in result.stdout) == (code == 1)


def test_a_report_for_people_holds_the_tables_and_a_plot(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    ready(platform, "demo")
    made = tmp_path / "report"
    assert run("retrieval", make_set(tmp_path / "demo"), "--report-to", made).exit_code == 0
    assert "| demo | 1 | keyword | 1.000" in (made / "report.md").read_text()
    picture = (made / "recall-at-5.svg").read_text()
    assert picture.startswith("<svg")
    assert "demo" in picture


def test_answers_are_judged_by_what_they_cite(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    ready(platform, "demo")
    cited = [
        {"n": n, "quote": quote, "page": None, "document_id": "d1"}
        for n, quote in enumerate((RIGHT, WRONG), 1)
    ]
    end = {"state": "done", "declined": False, "citations": cited}
    platform.answers |= {
        "POST /v1/conversations": (201, b'{"id": "c1"}'),
        "POST /v1/conversations/c1/turns": (
            200,
            f"id: 1\nevent: done\ndata: {json.dumps(end)}\n\n".encode(),
        ),
    }
    result = run("answers", make_set(tmp_path / "demo"))
    assert result.exit_code == 0, result.output
    # Citation precision, right document, citation recall, declined.
    assert [cell[:5] for cell in rows_of(result.stdout)[0][2:6]] == [
        "0.500",
        "1.000",
        "1.000",
        "0.000",
    ]


def test_refusals_are_what_the_gate_says_of_each_kind_of_question(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    ready(platform, "demo")
    gate = {"passed": False, "coverage": 0.25, "nearest": 0.5}
    found = {"hits": [], "explanation": {"gate": gate}}
    platform.answers["POST /v1/search"] = (200, json.dumps(found).encode())
    folder, made = make_set(tmp_path / "demo"), tmp_path / "report"
    line = (folder / "questions.jsonl").read_text()
    lines = [line.replace("q1", f"q{n}") for n in range(8)]
    (folder / "questions.jsonl").write_text("".join(lines))
    foreign = make_set(tmp_path / "other")
    result = run("refusals", folder, "--foreign", foreign, "--report-to", made)
    assert result.exit_code == 0, result.output
    report = (made / "report.md").read_text()
    all_declined = "1.000 [1.000, 1.000]"
    assert f"as it is, all questions |  | {all_declined} | {all_declined} | - |" in report
    assert "| demo | 5% lost | 0.75 | 0.000" in report
    assert json.loads(platform.bodies[-1])["explain"] is True
    assert (made / "refusals-demo.svg").read_text().startswith("<svg")


def test_a_set_that_was_loaded_before_is_measured_again(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    ready(platform, "demo")
    receipt = {"id": "d1", "name": "policy.txt", "state": "indexed", "generation": 1, "sha256": "0"}
    platform.answers["POST /v1/documents"] = (200, json.dumps(receipt).encode())
    result = run("retrieval", make_set(tmp_path / "demo"))
    assert result.exit_code == 0, result.output


def test_half_a_library_is_not_measured(platform: type[ScriptedPlatform], tmp_path: Path) -> None:
    ready(platform, "demo", state="failed", reason="corrupt")
    result = run("retrieval", make_set(tmp_path / "demo"))
    assert (result.exit_code, "policy.txt: failed corrupt" in result.stderr) == (1, True)


def test_a_file_that_another_domain_has_already_is_said_so(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    ready(platform, "demo", domain="law")
    result = run("retrieval", make_set(tmp_path / "demo"))
    assert (result.exit_code, "'law'" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"references": [{"doc_id": "gone", "text": "x"}]}, "line 1: no file gone.* in docs"),
        ({"references": [{"text": "x"}]}, "line 1: 'doc_id' is missing"),
        ({"references": 7}, "line 1: "),
    ],
)
def test_a_broken_set_is_named_by_file_and_line(
    platform: type[ScriptedPlatform], tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    result = run("retrieval", make_set(tmp_path / "demo", **change))
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


def test_a_folder_that_is_no_set_says_what_is_missing(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    result = run("retrieval", tmp_path)
    assert (result.exit_code, "needs questions.jsonl" in result.stderr) == (2, True)
