"""The Compose project under test: `docker-compose.yml` with each server's container replaced."""

import json
import resource
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from tests.deploy.repository import ROOT, read_yaml
from tests.deploy.tools import tool
from tests.images.engine import Engine
from tests.servers.elasticsearch import PASSWORD, USER

FILE = ROOT / "docker-compose.yml"
PROJECT = "sluice-images-test"
# Where each server is expected; etcd is Milvus's own affair.
PORTS = {
    "kafka": 9092,
    "mysql": 3306,
    "minio": 9000,
    "tika": 9998,
    "milvus": 19530,
    "elasticsearch": 9200,
}
PLATFORM = ("gateway", "ingest", "parser", "chunker", "indexer", "orchestrator", "executor",
            "memory-compactor")  # fmt: skip


class _Replaced(dict[str, Any]):
    """A mapping that is not merged with the one of the first file."""


class _ReplacedList(list[Any]):
    """A list that is not merged with the one of the first file."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Replaced, lambda d, x: d.represent_mapping("!override", x))
_Dumper.add_representer(_ReplacedList, lambda d, x: d.represent_sequence("!override", x))


class Compose:
    """Compose on podman's socket; secrets from a file of its own, never this folder's `.env`."""

    def __init__(self, engine: Engine, folder: Path, port: int) -> None:
        self._engine = engine
        self.secrets = _secrets()
        variables = {**self.secrets, "SLUICE_PORT": str(port), "SLUICE_VERSION": "images-test"}
        env_file = folder / "env"
        env_file.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
        override = folder / "override.yml"
        override.write_text(yaml.dump(_override(folder), Dumper=_Dumper))
        self._command = [
            *(tool("docker-compose"), "--project-name", PROJECT, "--project-directory", str(ROOT)),
            *("--env-file", str(env_file), "--file", str(FILE), "--file", str(override)),
            *("--progress", "plain"),
        ]

    def run(self, *arguments: str, within_s: float = 600.0) -> str:
        """What it printed. Raises: AssertionError with the end of what it said otherwise."""
        done = subprocess.run(
            [*self._command, *arguments],
            # One build after the other: the first makes the layers that all share.
            env={**self._engine.environment, "COMPOSE_PARALLEL_LIMIT": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within_s,
        )
        said = done.stderr[-3000:] + done.stdout[-3000:]
        assert done.returncode == 0, f"docker-compose {' '.join(arguments)}: {said}"
        return done.stdout

    def down(self) -> None:
        """Every process gets the time to drain that the file gives it."""
        self.run("down", "--volumes", "--remove-orphans")

    def health(self) -> dict[str, str]:
        """Of each of the project's containers by name: `healthy`, `starting`, `exited 0`, ..."""
        containers = self._engine.run("ps", "-aq", "--filter", f"label={_LABEL}={PROJECT}").split()
        if not containers:
            return {}
        found = {}
        for each in json.loads(self._engine.run("inspect", *containers)):
            state = each["State"]
            checked = (state.get("Health") or state.get("Healthcheck") or {}).get("Status")
            exited = f"exited {state['ExitCode']}" if state["Status"] == "exited" else None
            found[each["Name"]] = exited or checked or state["Status"]
        return found

    def logs(self) -> str:
        return self.run("logs", "--no-color", "--tail", "20")[-6000:]

    def left(self) -> dict[str, list[str]]:
        """What the project has left behind, by kind."""
        label = ("--filter", f"label={_LABEL}={PROJECT}")
        return {
            "containers": self._engine.run("ps", "-aq", *label).split(),
            "networks": self._engine.run("network", "ls", "-q", *label).split(),
            "volumes": self._engine.run("volume", "ls", "-q", *label).split(),
        }


# Elastic's image has a user of another name.
_ELASTIC = f"http://{USER}:{quote(PASSWORD)}@elasticsearch:9200"
_LABEL = "com.docker.compose.project"


def _secrets() -> dict[str, str]:
    """As `deploy/new-env.sh` makes them."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    names = [line.rstrip("=") for line in lines if line.endswith("=") and line[0] != "#"]
    return {name: f"{name.lower().replace('_', '')}{place:024}" for place, name in enumerate(names)}


def _override(folder: Path) -> dict[str, Any]:
    services: dict[str, Any] = {name: _forwarder(name, folder / "hosts") for name in PORTS}
    services["etcd"] = _idle()
    described = read_yaml(FILE)["services"]
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 65536:
        for name in set(PLATFORM) & {n for n, each in described.items() if "ulimits" in each}:
            services[name] = {"ulimits": _Replaced()}
    for name in (*PLATFORM, "migrate", "topics", "first-key"):
        services.setdefault(name, {})["environment"] = {"ELASTICSEARCH_URL": _ELASTIC}
    return {"services": services}


def _forwarder(name: str, hosts: Path) -> dict[str, Any]:
    """A container by the server's name that passes everything on to the server on the host."""
    port = PORTS[name]
    script = Path(__file__).parent / "forward.py"
    return {
        **_idle(),
        "entrypoint": ["python", "/forward.py"],
        "command": _ReplacedList([f"tcp:0.0.0.0:{port}=unix:/hosts/{name}"]),
        "volumes": _ReplacedList([f"{script}:/forward.py:ro", f"{hosts}:/hosts"]),
        "healthcheck": {
            "test": ["CMD", "python", "/forward.py", "--check", f"tcp:127.0.0.1:{port}"]
        },
    }


def _idle() -> dict[str, Any]:
    """In place of a server that is not needed."""
    return {
        "image": "sluice/cli:images-test",
        "entrypoint": ["sleep"],
        "command": _ReplacedList(["infinity"]),
        "environment": _Replaced(),
        "depends_on": _Replaced(),
        "mem_limit": "128m",
        "init": True,
        "healthcheck": {"test": ["CMD", "true"]},
        "ulimits": _Replaced(),
    }
