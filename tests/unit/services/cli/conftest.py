"""A platform that answers from a script."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest


class ScriptedPlatform(BaseHTTPRequestHandler):
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

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - names that the server looks for

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
    ScriptedPlatform.answers, ScriptedPlatform.bodies = {}, []
    yield ScriptedPlatform
    server.shutdown()
    thread.join()
    server.server_close()
