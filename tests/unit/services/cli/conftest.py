"""A platform that answers from a script."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

CUT = b"\n: cut here"  # the connection ends after this, in the middle of the body


class ScriptedPlatform(BaseHTTPRequestHandler):
    # By method and path; of several answers each is given once, the last one ever after.
    answers: ClassVar[dict[str, Any]] = {}
    bodies: ClassVar[list[bytes]] = []
    seen: ClassVar[list[tuple[str, str | None, str | None]]] = []

    def _answer(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers.get("content-length", 0))))
        path = self.path.partition("?")[0]
        key, last = self.headers.get("idempotency-key"), self.headers.get("last-event-id")
        self.seen.append((path, key, last))
        answer = self.answers[f"{self.command} {path}"]
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        status, body = answer
        self.send_response(status)
        streams = path.endswith(("/turns", "/events")) and status == 200
        self.send_header("content-type", "text/event-stream" if streams else "application/json")
        self.send_header("content-length", str(len(body) + body.endswith(CUT) * 100))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = body.endswith(CUT)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - names that the server looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[ScriptedPlatform]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedPlatform)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("SLUICE_PORT", str(server.server_port))
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nobody is there
    monkeypatch.delenv("NO_PROXY", raising=False)
    ScriptedPlatform.answers, ScriptedPlatform.bodies, ScriptedPlatform.seen = {}, [], []
    yield ScriptedPlatform
    server.shutdown()
    thread.join()
    server.server_close()
