"""The commands against a platform that answers from a script: what they say and exit with."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.unit.services.cli.conftest import ScriptedPlatform


def ending(kind: str, **data: object) -> dict[str, tuple[int, bytes]]:
    event = f"id: 1\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()
    return {
        "POST /v1/conversations": (201, b'{"id": "c1"}'),
        "POST /v1/conversations/c1/turns": (200, event),
    }


def test_a_failed_turn_says_why_and_exits_with_1(platform: type[ScriptedPlatform]) -> None:
    error = {"reason": "model-refused", "detail": "The model server refused."}
    platform.answers = ending("error", state="failed", error=error)
    result = CliRunner().invoke(app, ["ask", "why?"])
    assert (result.exit_code, "The model server refused." in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("state", "declined", "code"), [("done", False, 0), ("done", True, 5), ("cancelled", False, 1)]
)
def test_scripts_can_tell_how_a_turn_ended(
    platform: type[ScriptedPlatform], state: str, declined: bool, code: int
) -> None:
    platform.answers = ending("done", state=state, declined=declined, citations=[])
    assert CliRunner().invoke(app, ["ask", "why?"]).exit_code == code


def test_an_argument_that_is_no_unicode_is_asked_all_the_same(
    platform: type[ScriptedPlatform],
) -> None:
    platform.answers = {"POST /v1/search": (200, b'{"hits": []}')}
    assert CliRunner().invoke(app, ["search", os.fsdecode(b"a\xff")]).exit_code == 1
    assert json.loads(platform.bodies[0])["query"] == "a?"


def test_a_file_name_in_gb18030_arrives_as_what_it_says(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    file = tmp_path / os.fsdecode("报销.txt".encode("gb18030"))
    file.write_bytes(b"x")
    platform.answers = {"POST /v1/documents": (202, b'{"id": "d1", "state": "uploaded"}')}
    result = CliRunner().invoke(app, ["upload", "--no-wait", "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "报销.txt".encode() in platform.bodies[0]


def test_a_document_deleted_meanwhile_does_not_stop_the_others(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(b"x")
    platform.answers = {
        "POST /v1/documents": (202, b'{"id": "d1", "state": "uploaded"}'),
        "GET /v1/documents/d1": (404, b'{"detail": "There is no document d1."}'),
    }
    result = CliRunner().invoke(app, ["upload", "--json", str(tmp_path / "a.txt")])
    assert result.exit_code == 1
    assert "no document d1" in json.loads(result.stdout)["reason"]


def test_what_is_no_platform_and_no_setting_is_named(
    platform: type[ScriptedPlatform], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.answers = {"POST /v1/search": (200, b"<html>")}
    assert CliRunner().invoke(app, ["search", "x"]).exit_code == 3
    monkeypatch.setenv("SLUICE_PORT", "eighty")
    result = CliRunner().invoke(app, ["search", "x"])
    assert (result.exit_code, "SLUICE_PORT" in result.stderr) == (2, True)


def test_no_diagnostic_shows_a_password_or_a_key(
    platform: type[ScriptedPlatform], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_API_KEY", "slk_s3cret-s3cret")
    monkeypatch.setenv("SLUICE_URL", "http://me:s3cret@127.0.0.1:9")
    said = CliRunner().invoke(app, ["search", "x"])
    assert (said.exit_code, "127.0.0.1:9" in said.stderr) == (3, True)
    monkeypatch.delenv("SLUICE_URL")
    platform.answers = {"POST /v1/search": (401, b'{"detail": "No key slk_s3cret-s3cret."}')}
    refused = CliRunner().invoke(app, ["search", "x"])
    assert refused.exit_code == 4
    for result in (said, refused):
        assert "s3cret" not in result.output + str(result.exception)
