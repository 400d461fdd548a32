"""`sluice inspect`: what is asked of the platform, and the file it writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.unit.services.cli.conftest import ScriptedPlatform
from tests.unit.services.cli.inspection.examples import chunk, document, found, plan, small

URL = "/v1/documents/d"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _json(body: Any) -> tuple[int, bytes]:
    return 200, json.dumps(body).encode()


def _scripted(platform: type[ScriptedPlatform], **changed: Any) -> None:
    """The example document, its blocks and chunks in pages of at most two."""
    whole = small()
    blocks = [
        _json({**whole.outline, "items": whole.blocks[:2], "next": 1}),
        _json({**whole.outline, "items": whole.blocks[2:]}),
    ]
    chunks = [
        _json({"generation": 1, "items": whole.chunks, "next": None}),
        _json({"generation": 1, "items": whole.parents, "next": None}),
    ]
    platform.answers = {
        f"GET {URL}": _json(document()),
        f"GET {URL}/plan": _json(plan()),
        f"GET {URL}/blocks": blocks,
        f"GET {URL}/chunks": chunks,
        f"GET {URL}/text": (200, (whole.text + " and what nobody asked for").encode()),
        "POST /v1/search": [_json(found()), _json(found(hits=[]))],
        **changed,
    }


def test_a_report_is_one_file(platform: type[ScriptedPlatform], tmp_path: Path) -> None:
    _scripted(platform)
    result = CliRunner().invoke(app, ["inspect", "d", "--question", "What may a taxi cost?"])
    assert (result.exit_code, result.stdout) == (0, "inspect-d.html\n")
    html = (tmp_path / "inspect-d.html").read_text(encoding="utf-8")
    for said in ("rules.md", "Above 20 000 ask the director.", "<td>Taxi</td>", "moved up"):
        assert said in html
    assert "nobody asked for" not in html  # it lies behind the last block


def test_a_question_is_asked_of_the_document_and_of_the_library(
    platform: type[ScriptedPlatform],
) -> None:
    _scripted(platform)
    CliRunner().invoke(app, ["inspect", "d", "--question", "报销", "--out", "report.html"])
    within, library = (json.loads(body) for body in platform.bodies if body)
    assert within.pop("filters") == {"document_ids": ["d"]}
    assert within == library
    assert (library["query"], library["explain"]) == ("报销", True)
    assert Path("report.html").is_file()


def test_no_more_is_read_than_is_shown(platform: type[ScriptedPlatform]) -> None:
    whole = small()
    first = {**whole.outline, "items": whole.blocks[:2], "next": 1, "total": 9}
    _scripted(platform, **{f"GET {URL}/blocks": _json(first)})
    result = CliRunner().invoke(app, ["inspect", "d", "--rows", "2"])
    assert result.exit_code == 0, result.output
    assert [path for path, *_ in platform.seen].count(f"{URL}/blocks") == 1
    html = Path("inspect-d.html").read_text(encoding="utf-8")
    assert "the first 2 of 9" in html
    assert "Chunk 1" in html
    assert "Chunk 2" not in html  # it lies behind the last block that is shown


def test_what_there_is_no_room_for_is_not_called_lost(platform: type[ScriptedPlatform]) -> None:
    long = {**small().blocks[1], "start": 0, "end": 60}
    blocks = {**small().outline, "items": [long], "next": None, "total": 1}
    chunks = [chunk(0, "Rules", 0), chunk(1, "Above", 6)]
    capped = _json({"generation": 1, "items": chunks, "next": 1})
    _scripted(platform, **{f"GET {URL}/blocks": _json(blocks), f"GET {URL}/chunks": capped})
    result = CliRunner().invoke(app, ["inspect", "d", "--rows", "2"])
    assert result.exit_code == 0, result.output
    html = Path("inspect-d.html").read_text(encoding="utf-8")
    assert "Above" in html
    assert "director" not in html
    assert "in no chunk" not in html


def test_an_unparsed_document_is_reported_with_the_reason(platform: type[ScriptedPlatform]) -> None:
    conflict = (409, b'{"detail": "the document is failed: it has no parsed text"}')
    _scripted(platform, **{f"GET {URL}/blocks": conflict})
    assert CliRunner().invoke(app, ["inspect", "d"]).exit_code == 0
    html = Path("inspect-d.html").read_text(encoding="utf-8")
    assert "the document is failed: it has no parsed text" in html


def test_a_document_that_changes_meanwhile_is_not_mixed(platform: type[ScriptedPlatform]) -> None:
    newer = _json({"generation": 2, "items": small().chunks, "next": None})
    _scripted(platform, **{f"GET {URL}/chunks": newer})
    result = CliRunner().invoke(app, ["inspect", "d"])
    assert result.exit_code == 3
    assert "try again" in result.stderr
    assert not Path("inspect-d.html").exists()


def test_an_unknown_document_and_a_bad_place_are_said(platform: type[ScriptedPlatform]) -> None:
    _scripted(platform)
    result = CliRunner().invoke(app, ["inspect", "d", "--out", "no/such/folder.html"])
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr
    platform.answers[f"GET {URL}"] = (404, b'{"detail": "no such document"}')
    result = CliRunner().invoke(app, ["inspect", "d"])
    assert result.exit_code == 1
    assert "no such document" in result.stderr
