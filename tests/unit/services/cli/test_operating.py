"""The operators' commands: what a person reads and what a script can tell."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.unit.services.cli.conftest import ScriptedPlatform

EXECUTOR = {
    "group": "executor",
    "topic": "chat.planned.v1",
    "kind": "main",
    "partitions": 6,
    "waiting": 120,
    "oldest_s": 40.0,
    "state": "stalled",
    "verdict": "stalled: 120 waiting; no executor is running",
}
STALLED = {
    "state": "stalled",
    "groups": [EXECUTOR],
    "workers": [{"service": "executor", "live": 0, "ready": 0, "missing": []}],
    "dead_letters": [{"group": "parser", "topic": "t.parser.dlq", "unhandled": 2}],
    "unsent": {"rows": 0, "oldest_due_s": None},
}
FAILED = {
    "kind": "document",
    "id": "d1",
    "name": "a.pdf",
    "state": "failed",
    "since_s": 90.0,
    "why": "failed",
    "words": "failed at index (retries-exhausted): away",
    "resumable": True,
}
HOPELESS = {**FAILED, "id": "d2", "words": "failed at parse (encrypted): key", "resumable": False}


def answer(body: object, status: int = 200) -> tuple[int, bytes]:
    return status, json.dumps(body).encode()


def stuck_page(*failed: object, following: str | None = None) -> dict[str, object]:
    return {"unfinished": [], "failed": failed, "more": False, "next_failed": following}


def letters_page(
    done: list[object], refused: list[object], following: str | None = None
) -> dict[str, object]:
    return {"done": done, "refused": refused, "next": following}


def test_lag_exits_with_1_when_somebody_waits_in_vain(platform: type[ScriptedPlatform]) -> None:
    platform.answers = {"GET /v1/admin/lag": answer(STALLED)}
    result = CliRunner().invoke(app, ["lag"])
    assert result.exit_code == 1
    assert "stalled: 120 waiting; no executor is running" in result.stdout
    assert "sluice dlq list --group parser" in result.stdout
    platform.answers = {"GET /v1/admin/lag": answer({**STALLED, "state": "ok"})}
    result = CliRunner().invoke(app, ["lag", "--json"])
    assert (result.exit_code, json.loads(result.stdout)["state"]) == (0, "ok")


def test_stuck_shows_why_and_resumes_only_what_that_can_help(
    platform: type[ScriptedPlatform],
) -> None:
    platform.answers = {
        "GET /v1/admin/stuck": answer(stuck_page(FAILED, HOPELESS)),
        "POST /v1/documents/d1/resume": answer({"id": "d1", "state": "chunked"}, 202),
    }
    result = CliRunner().invoke(app, ["stuck", "--older-than", "5m", "--resume"])
    assert result.exit_code == 0, result.output
    assert "failed at parse (encrypted): key" in result.stdout
    assert "d1  goes on from chunked" in result.stdout


def test_a_refused_resume_is_named_and_exits_with_1(platform: type[ScriptedPlatform]) -> None:
    platform.answers = {
        "POST /v1/documents/d1/resume": answer({"detail": "There is nothing to resume."}, 409),
        "POST /v1/documents/d2/resume": answer({"id": "d2", "state": "uploaded"}, 202),
    }
    result = CliRunner().invoke(app, ["resume", "d1", "d2"])
    assert result.exit_code == 1
    assert "nothing to resume" in result.stdout
    assert "d2  goes on from uploaded" in result.stdout


@pytest.mark.parametrize("command", [["resume", "--failed"], ["stuck", "--resume"]])
def test_every_page_of_failed_documents_is_resumed(
    platform: type[ScriptedPlatform], command: list[str]
) -> None:
    platform.answers = {
        "GET /v1/admin/stuck": [
            answer(stuck_page(FAILED, following="1-d1")),
            answer(stuck_page(HOPELESS, following="2-d2")),
            answer(stuck_page({**FAILED, "id": "d3"})),
        ],
        **{
            f"POST /v1/documents/{name}/resume": answer({"id": name, "state": "chunked"}, 202)
            for name in ("d1", "d3")
        },
    }
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("goes on from chunked") == 2
    assert ("and more" in result.stdout) == (command[0] == "stuck")


@pytest.mark.parametrize(
    "command",
    [["resume"], ["resume", "d1", "--failed"], ["dlq", "purge"], ["dlq", "redrive", "x", "--all"]],
)
def test_a_command_that_names_nothing_or_too_much_does_nothing(
    platform: type[ScriptedPlatform], command: list[str]
) -> None:
    assert CliRunner().invoke(app, command).exit_code == 2
    assert platform.bodies == []


def test_dead_letters_are_redriven_by_filter_and_refusals_are_told(
    platform: type[ScriptedPlatform],
) -> None:
    done = letters_page([{"id": "a", "how": "resumed"}], [{"id": "b", "detail": "Over."}])
    platform.answers = {"POST /v1/admin/dlq/redrive": answer(done, 202)}
    result = CliRunner().invoke(app, ["dlq", "redrive", "--group", "indexer"])
    assert (result.exit_code, result.stdout.strip()) == (1, "a  resumed")
    assert "b  refused: Over." in result.stderr
    assert json.loads(platform.bodies[0]) == {"group": "indexer"}


@pytest.mark.parametrize("act", ["redrive", "purge"])
def test_every_page_of_dead_letters_is_handled(platform: type[ScriptedPlatform], act: str) -> None:
    platform.answers = {
        f"POST /v1/admin/dlq/{act}": [
            answer(letters_page([], [{"id": "b", "detail": "Over."}], "7-b"), 202),
            answer(letters_page([{"id": "a", "how": "resumed"}], []), 202),
        ]
    }
    result = CliRunner().invoke(app, ["dlq", act, "--reason", "internal-error"])
    assert (result.exit_code, result.stdout.strip()) == (1, "a  resumed")
    assert [json.loads(body) for body in platform.bodies] == [
        {"reason": "internal-error"},
        {"reason": "internal-error", "cursor": "7-b"},
    ]


def test_a_made_key_is_alone_on_stdout(platform: type[ScriptedPlatform]) -> None:
    platform.answers = {"POST /v1/admin/keys": answer({"id": "k", "key": "slk_x"}, 201)}
    result = CliRunner().invoke(app, ["keys", "create", "ci", "--role", "reader"])
    assert (result.exit_code, result.stdout) == (0, "slk_x\n")


def test_a_key_without_the_role_is_told_so(platform: type[ScriptedPlatform]) -> None:
    platform.answers = {"GET /v1/admin/lag": answer({"detail": "This needs the role admin."}, 403)}
    assert CliRunner().invoke(app, ["lag"]).exit_code == 4


def test_fsck_makes_no_database_where_there_is_none(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    result = CliRunner().invoke(app, ["fsck"])
    assert (result.exit_code, "SLUICE_HOME" in result.stderr) == (3, True)
    assert not (tmp_path / "home").exists()


BUILDING = {"state": "building", "done": 3, "total": 7, "problem": None, "needed": []}


def test_reindex_starts_once_says_how_far_it_is_and_is_ended(
    platform: type[ScriptedPlatform],
) -> None:
    refused = answer({"detail": "a re-index is under way"}, 409)
    platform.answers = {"POST /v1/admin/reindex": answer(BUILDING, 202)}
    result = CliRunner().invoke(app, ["reindex", "--rechunk"])
    assert (result.exit_code, "3 of 7 documents" in result.stdout) == (0, True)
    platform.answers = {"POST /v1/admin/reindex": refused}
    result = CliRunner().invoke(app, ["reindex"])
    assert (result.exit_code, "under way" in result.output) == (1, True)
    held_up = {**BUILDING, "problem": "document d: away", "needed": ["older words"]}
    platform.answers = {"GET /v1/admin/reindex": answer(held_up)}
    result = CliRunner().invoke(app, ["reindex", "--status"])
    assert "held up: document d: away\nneeded: older words" in result.stdout
    platform.answers = {"DELETE /v1/admin/reindex": answer({**BUILDING, "state": "cancelling"})}
    result = CliRunner().invoke(app, ["reindex", "--cancel"])
    assert (result.exit_code, "cancelled" in result.stdout) == (0, True)
    assert CliRunner().invoke(app, ["reindex", "--cancel", "--status"]).exit_code == 2


def test_reindex_that_is_followed_ends_with_the_switch(platform: type[ScriptedPlatform]) -> None:
    switched = {**BUILDING, "state": "switched", "switched_at": "2026-01-01T00:00:00Z"}
    platform.answers = {
        "POST /v1/admin/reindex": answer(BUILDING, 202),
        "GET /v1/admin/reindex": answer(switched),
    }
    result = CliRunner().invoke(app, ["reindex", "--wait", "--json"])
    assert (result.exit_code, json.loads(result.stdout)["state"]) == (0, "switched")
    platform.answers["GET /v1/admin/reindex"] = answer({**BUILDING, "state": "cancelling"})
    assert CliRunner().invoke(app, ["reindex", "--wait"]).exit_code == 1
