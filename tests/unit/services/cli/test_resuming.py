"""Cut connections and restarts of the platform: nothing is asked, sent or printed twice."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.errors import AwayError
from services.cli.patience import Patience
from tests.unit.services.cli.conftest import CUT, ScriptedPlatform


def events(*some: tuple[int, str, Mapping[str, object]], cut: bool = False) -> tuple[int, bytes]:
    frames = [f"id: {n}\nevent: {kind}\ndata: {json.dumps(data)}\n\n" for n, kind, data in some]
    return 200, "".join(frames).encode() + (CUT if cut else b": heartbeat\n\n")


ASKED = (1, "status", {"turn_id": "t1"})
ONE, TWO = (2, "delta", {"text": "one "}), (3, "delta", {"text": "two "})
DONE = (4, "done", {"state": "done", "citations": []})
BUSY = (503, b'{"detail": "A part does not answer."}')


def test_a_cut_answer_is_taken_up_where_it_ended_and_printed_once(
    platform: type[ScriptedPlatform],
) -> None:
    platform.answers = {
        "POST /v1/conversations": [BUSY, (201, b'{"id": "c1"}')],
        "POST /v1/conversations/c1/turns": [BUSY, events(ASKED, ONE, cut=True)],
        "GET /v1/turns/t1/events": [BUSY, events(ONE, TWO, cut=True), events(DONE)],
    }
    result = CliRunner().invoke(app, ["ask", "why?"])
    assert (result.exit_code, result.stdout) == (0, "one two \n"), result.output
    turns = [(key, last) for path, key, last in platform.seen if path.endswith("/turns")]
    assert len(turns) == 2
    assert len({key for key, _ in turns}) == 1
    assert turns[0][0]
    begun = [key for path, key, _ in platform.seen if path == "/v1/conversations"]
    assert begun[0] == begun[1]
    assert [last for path, _, last in platform.seen if path.endswith("/events")] == ["2", "2", "3"]


def test_a_quiet_phase_after_an_event_ends_no_answer(platform: type[ScriptedPlatform]) -> None:
    status, first = events(ASKED, ONE)
    platform.answers = {
        "POST /v1/conversations": (201, b'{"id": "c1"}'),
        "POST /v1/conversations/c1/turns": (status, first + b": heartbeat\n\n" + events(DONE)[1]),
    }
    result = CliRunner().invoke(app, ["ask", "why?"])
    assert (result.exit_code, result.stdout) == (0, "one \n")


def test_an_answer_that_starts_again_says_so(platform: type[ScriptedPlatform]) -> None:
    again = (3, "restarted", {"turn_id": "t1", "reason": "taken-over"})
    platform.answers = {
        "POST /v1/conversations": (201, b'{"id": "c1"}'),
        "POST /v1/conversations/c1/turns": events(ASKED, ONE, cut=True),
        "GET /v1/turns/t1/events": events(
            again, (4, "delta", {"text": "new"}), (5, "done", {"state": "done", "citations": []})
        ),
    }
    result = CliRunner().invoke(app, ["ask", "why?"])
    assert result.stdout == "one \n[the answer starts again]\n\nnew\n"


def test_an_answer_that_waits_says_what_for_beside_the_answer(
    platform: type[ScriptedPlatform],
) -> None:
    lacking = (2, "status", {"turn_id": "t1", "status": "waiting", "for": ["executor", "kafka"]})
    retried = (3, "status", {"turn_id": "t1", "status": "waiting", "for": []})
    answered = (4, "delta", {"text": "yes"}), (5, "done", {"state": "done", "citations": []})
    platform.answers = {
        "POST /v1/conversations": (201, b'{"id": "c1"}'),
        "POST /v1/conversations/c1/turns": events(ASKED, lacking, retried, *answered),
    }
    result = CliRunner().invoke(app, ["ask", "why?"])
    assert result.stdout == "yes\n"
    assert "(waiting for executor, kafka)\n(waiting for somebody to work on it)" in result.stderr


def test_documents_are_followed_while_the_platform_restarts(
    platform: type[ScriptedPlatform], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(b"x")
    platform.answers = {
        "POST /v1/documents": [BUSY, (202, b'{"id": "d1", "state": "uploaded"}')],
        "GET /v1/documents/d1": [BUSY, BUSY, (200, b'{"id": "d1", "state": "indexed"}')],
    }
    result = CliRunner().invoke(app, ["upload", "--json", str(tmp_path / "a.txt")])
    assert (result.exit_code, json.loads(result.stdout)["state"]) == (0, "indexed")


async def test_patience_ends_and_nobody_waits_for_a_platform_that_never_was() -> None:
    away = AwayError("nobody there", answered=False)
    with pytest.raises(AwayError):
        await Patience().bear(away)
    patience = Patience(0.0, pause_s=0.0)
    patience.answered()
    with pytest.raises(AwayError):
        await patience.bear(away)
