"""The commands against a platform that answers from a script: what they say and exit with."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app


class _Platform(BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}
    bodies: ClassVar[list[bytes]] = []

    def _answer(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers.get("content-length", 0))))
        status, body = self.answers[f"{self.command} {self.path.partition('?')[0]}"]
        self.send_response(status)
        kind = "text/event-stream" if self.path.endswith("/turns") else "application/json"
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 - names that the server looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[_Platform]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Platform)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("SLUICE_PORT", str(server.server_port))
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nobody is there
    monkeypatch.delenv("NO_PROXY", raising=False)
    _Platform.answers, _Platform.bodies = {}, []
    yield _Platform
    server.shutdown()
    thread.join()
    server.server_close()


def ending(kind: str, **data: object) -> dict[str, tuple[int, bytes]]:
    event = f"id: 1\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()
    return {
        "POST /v1/conversations": (201, b'{"id": "c1"}'),
        "POST /v1/conversations/c1/turns": (200, event),
    }


def test_a_failed_turn_says_why_and_exits_with_1(platform: type[_Platform]) -> None:
    error = {"reason": "model-refused", "detail": "The model server refused."}
    platform.answers = ending("error", state="failed", error=error)
    result = CliRunner().invoke(app, ["ask", "why?"])
    assert (result.exit_code, "The model server refused." in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("state", "declined", "code"), [("done", False, 0), ("done", True, 5), ("cancelled", False, 1)]
)
def test_scripts_can_tell_how_a_turn_ended(
    platform: type[_Platform], state: str, declined: bool, code: int
) -> None:
    platform.answers = ending("done", state=state, declined=declined, citations=[])
    assert CliRunner().invoke(app, ["ask", "why?"]).exit_code == code


def test_an_argument_that_is_no_unicode_is_asked_all_the_same(platform: type[_Platform]) -> None:
    platform.answers = {"POST /v1/search": (200, b'{"hits": []}')}
    assert CliRunner().invoke(app, ["search", os.fsdecode(b"a\xff")]).exit_code == 1
    assert json.loads(platform.bodies[0])["query"] == "a?"


def test_a_file_name_in_gb18030_arrives_as_what_it_says(
    platform: type[_Platform], tmp_path: Path
) -> None:
    file = tmp_path / os.fsdecode("报销.txt".encode("gb18030"))
    file.write_bytes(b"x")
    platform.answers = {"POST /v1/documents": (202, b'{"id": "d1", "state": "uploaded"}')}
    result = CliRunner().invoke(app, ["upload", "--no-wait", "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "报销.txt".encode() in platform.bodies[0]


def test_a_document_deleted_meanwhile_does_not_stop_the_others(
    platform: type[_Platform], tmp_path: Path
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
    platform: type[_Platform], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.answers = {"POST /v1/search": (200, b"<html>")}
    assert CliRunner().invoke(app, ["search", "x"]).exit_code == 3
    monkeypatch.setenv("SLUICE_PORT", "eighty")
    result = CliRunner().invoke(app, ["search", "x"])
    assert (result.exit_code, "SLUICE_PORT" in result.stderr) == (2, True)
