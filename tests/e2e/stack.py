"""Starts the local stack as a user does, on ports and in a folder of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.ports import free_port

READY_S = 120.0
STOP_S = 40.0
ROOT = Path(__file__).parents[2]


def wait_until(
    condition: Callable[[], bool], what: str, timeout_s: float = READY_S, *, every_s: float = 0.1
) -> None:
    """Raises: AssertionError, naming `what`, when the condition does not come true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in {timeout_s:g} s: {what}"
        time.sleep(every_s)


class Site:
    """A platform as its users see it: an address and a key."""

    def __init__(self, url: str, key: Callable[[], str]) -> None:
        """`key` is asked when it is needed: a start makes the first one."""
        self.url = url
        self._key = key

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self._key()}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def upload(self, name: str, content: str | bytes) -> dict[str, Any]:
        """Upload and wait for the document's end."""
        with self.client() as client:
            response = client.post("/v1/documents", files={"file": (name, content)})
            assert response.status_code in {200, 202}, response.text
            return self.finished(response.json()["id"])

    def finished(self, document_id: str) -> dict[str, Any]:
        document: dict[str, Any] = {}

        def is_final() -> bool:
            with self.client() as client:
                response = client.get(f"/v1/documents/{document_id}")
            if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                return False  # a service was just killed
            document.update(response.json())
            return document["state"] in {"indexed", "failed", "cancelled"}

        wait_until(is_final, f"document {document_id} at its end: {document}")
        return document

    def ask(self, question: str, conversation: str | None = None) -> dict[str, Any]:
        with self.client() as client:
            conversation = conversation or client.post("/v1/conversations", json={}).json()["id"]
            path = f"/v1/conversations/{conversation}/turns"
            response = client.post(path, json={"text": question})
            assert response.status_code == httpx.codes.OK, response.text
            answer: dict[str, Any] = json.loads(response.text)
            return answer


class Stack(Site):
    """One running local stack and its HTTP client."""

    def __init__(self, home: Path, environment: dict[str, str] | None = None) -> None:
        self.ports = [free_port() for _ in range(4)]
        url = f"http://127.0.0.1:{self.ports[0]}"
        super().__init__(url, lambda: (home / "api-key").read_text().strip())
        self.home = home
        names = ("SLUICE_PORT", "SLUICE_INGEST_PORT", "SLUICE_BROKER_PORT", "SLUICE_MILVUS_PORT")
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLUICE_", "LLM_"))},
            **dict(zip(names, map(str, self.ports), strict=True)),
            "SLUICE_HOME": str(home),
            **(environment or {}),
        }
        self.log = home.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "services.local"],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(self.is_ready, "ready")
        except AssertionError as exc:
            self.kill()
            raise AssertionError(f"{exc}; {self.log.read_text()[-3000:]}") from exc

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return httpx.get(f"{self.url}/ready", timeout=5).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def missing(self) -> list[str]:
        """What `/ready` names."""
        answer = httpx.get(f"{self.url}/ready", timeout=10)
        return [] if answer.is_success else [str(each) for each in answer.json()["missing"]]

    def cli(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "services.cli", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def processes(self) -> dict[str, int]:
        """The supervised processes by service name, as `ps` shows them; the second of a service as
        `name-2`, and so on.
        """
        assert self.process is not None
        found: dict[str, int] = {}
        for child in psutil.Process(self.process.pid).children():
            try:
                title = " ".join(child.cmdline())
            except psutil.NoSuchProcess:  # it ended just now
                continue
            if title.startswith("sluice: "):
                name = title.removeprefix("sluice: ").split()[0]
                same = sum(other.split("-")[0] == name for other in found)
                found[f"{name}-{same + 1}" if same else name] = child.pid
        return found

    def family(self) -> list[psutil.Process]:
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """The supervisor, at once; its processes end by themselves."""
        assert self.process is not None
        family = self.family() if self.process.poll() is None else []
        self.process.kill()
        self.process.wait()
        psutil.wait_procs(family, timeout=30)

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=STOP_S)
