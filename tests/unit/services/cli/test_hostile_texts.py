"""What documents, people and servers wrote commands no terminal and draws nothing of its own."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.unit.services.cli.conftest import CUT, ScriptedPlatform
from tests.unit.services.cli.test_operating import FAILED, STALLED, answer

SAID = "[bold]x[/nope] :bomb: \\[link=file:///etc/passwd]"  # is to be shown as it is
EVIL = f"\x1b[2J\x1b]0;owned\x07\x9b31m\r\x08\x00\x7f\u202e\u2028\u0085{SAID}"
ID = "d1"

DOCUMENT = {"id": ID, "state": "failed", "name": EVIL, "reason": EVIL, "detail": EVIL, "counts": {}}
HIT = {"document_name": EVIL, "text": EVIL, "heading_path": [EVIL], "scores": {"vector": 0.5}}
TERMS = [{"term": EVIL, "weight": 1.0}]
EXPLAINED_HIT = HIT | {
    "duplicate_of": EVIL,
    "neighbours": [{"position": 1, "text": EVIL}],
    "explanation": {"rank": 1, "fused_rank": 1, "channels": {}, "matched_terms": TERMS},
}
EXPLANATION = {
    "terms": TERMS,
    "matching_documents": None,
    "channels": {},
    "near_copies": 0,
    "rerank": {"model": EVIL, "reranked": 0, "error": EVIL},
    "gate": {"passed": True, "coverage": 1.0, "nearest": 1.0, "needed": 1.0, "reason": EVIL},
    "seconds": {},
}
CITATION = {"n": 1, "document_name": EVIL, "quote": EVIL, "start": 0, "end": 9}
LETTER = {
    "id": "l1",
    "created_at": "2026-01-01T00:00:00Z",
    "group": EVIL,
    "topic": EVIL,
    "attempts": 3,
    "reason": EVIL,
    "detail": EVIL,
    "redriven_at": None,
}
KEY = {"id": "k1", "role": "admin", "created_at": "2026-01-01", "revoked_at": None, "name": EVIL}
GROUP: dict[str, Any] = {**STALLED["groups"][0], "verdict": EVIL}  # type: ignore[index]
STUCK = {**FAILED, "name": "\x1b[2Ja.txt", "words": EVIL}


def _events(*events: tuple[str, Any]) -> bytes:
    return b"".join(
        f"id: {seq}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()
        for seq, (kind, data) in enumerate(events, start=1)
    )


TURN = "POST /v1/conversations/c1/turns"
BEGUN = {"POST /v1/conversations": answer({"id": "c1"}, 201)}
DONE = {"answer": EVIL, "state": "done", "citations": [CITATION]}
REINDEX = {"state": "building", "done": 1, "total": 2, "needed": []}
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "ask": (
        ["ask", "why?"],
        BEGUN | {TURN: (200, _events(("delta", {"text": EVIL}), ("done", DONE)))},
    ),
    "failed turn": (
        ["ask", "why?"],
        BEGUN | {TURN: (200, _events(("error", {"error": {"detail": EVIL}})))},
    ),
    "refused": (["ask", "why?"], {"POST /v1/conversations": answer({"detail": EVIL}, 422)}),
    "no key": (["lag"], {"GET /v1/admin/lag": answer({"detail": EVIL}, 401)}),
    "search": (["search", "x"], {"POST /v1/search": answer({"hits": [HIT]})}),
    "explained search": (
        ["search", "x", "--explain"],
        {"POST /v1/search": answer({"hits": [EXPLAINED_HIT], "explanation": EXPLANATION})},
    ),
    "status": (
        ["status"],
        {
            "GET /ready": answer({"missing": [EVIL]}, 503),
            "GET /v1/documents": answer({"items": [DOCUMENT]}),
        },
    ),
    "document": (["status", ID], {f"GET /v1/documents/{ID}": answer(DOCUMENT)}),
    "lag": (["lag"], {"GET /v1/admin/lag": answer({**STALLED, "groups": [GROUP]})}),
    "stuck": (
        ["stuck"],
        {
            "GET /v1/admin/stuck": answer(
                {"unfinished": [STUCK], "failed": [], "more": False, "next_failed": None}
            )
        },
    ),
    "resume": (
        ["resume", ID],
        {f"POST /v1/documents/{ID}/resume": answer({"detail": EVIL}, 409)},
    ),
    "letters": (["dlq", "list"], {"GET /v1/admin/dlq": answer({"items": [LETTER], "next": None})}),
    "letter": (["dlq", "show", "l1"], {"GET /v1/admin/dlq/l1": answer(LETTER)}),
    "redrive": (
        ["dlq", "redrive", "--all"],
        {
            "POST /v1/admin/dlq/redrive": answer(
                {
                    "done": [{"id": "a", "how": EVIL}],
                    "refused": [{"id": "b", "detail": EVIL}],
                    "next": None,
                }
            )
        },
    ),
    "reindex": (
        ["reindex", "--status"],
        {"GET /v1/admin/reindex": answer(REINDEX | {"problem": EVIL})},
    ),
    "keys": (["keys", "list"], {"GET /v1/admin/keys": answer({"items": [KEY]})}),
}


def hidden_in(output: str) -> set[str]:
    return {char for char in output if char != "\n" and not char.isprintable()}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
@pytest.mark.parametrize("as_json", [False, True], ids=["people", "scripts"])
def test_it_is_shown_and_obeyed_by_nothing(
    platform: type[ScriptedPlatform], case: tuple[list[str], dict[str, Any]], as_json: bool
) -> None:
    command, platform.answers = case
    result = CliRunner().invoke(app, [*command, *(["--json"] if as_json else [])])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert not hidden_in(result.output), result.output.encode()
    shown = "".join(result.output.replace("\\\\", "\\").split())
    assert "".join(SAID.split()) in shown, result.output
    if as_json and result.stdout:
        for line in result.stdout.splitlines():
            json.loads(line)


def test_a_failed_upload_tells_its_reason_harmlessly(
    platform: type[ScriptedPlatform], tmp_path: Any
) -> None:
    file = tmp_path / "\x1b[2J[red]evil[nope].txt"
    file.write_bytes(b"x")
    platform.answers = {
        "POST /v1/documents": answer({**DOCUMENT, "state": "uploaded"}, 202),
        f"GET /v1/documents/{ID}": answer(DOCUMENT),
    }
    result = CliRunner().invoke(app, ["upload", str(file)])
    assert result.exit_code == 1
    assert not hidden_in(result.output.replace("\x1b[?25l", "").replace("\x1b[?25h", ""))
    assert "[red]evil[nope].txt" in result.output
    assert SAID in result.output


def test_a_cut_stream_and_a_text_in_pieces_put_no_command_together(
    platform: type[ScriptedPlatform],
) -> None:
    begun = _events(("status", {"turn_id": "t1"}), ("delta", {"text": "a\x1b"}))
    rest = b'id: 3\nevent: delta\ndata: {"text": "[2Jb"}\n\n'
    done = f"id: 4\nevent: done\ndata: {json.dumps({**DONE, 'citations': []})}\n\n".encode()
    platform.answers = BEGUN | {
        TURN: (200, begun + CUT),
        "GET /v1/turns/t1/events": (200, rest + done),
    }
    result = CliRunner().invoke(app, ["ask", "why?"])
    assert result.stdout == "a[2Jb\n"
