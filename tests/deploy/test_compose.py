"""docker-compose.yml as the Compose program itself understands it."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from libs.eventbus.policies import FlowPolicy
from tests.deploy.repository import (
    OBSERVABILITY,
    ROOT,
    read_yaml,
    service_modules,
    variables_read,
)
from tests.deploy.tools import run, tool

FILE = ROOT / "docker-compose.yml"
SECRETS = {
    line.rstrip("=")
    for line in (ROOT / ".env.example").read_text().splitlines()
    if line.endswith("=") and not line.startswith("#")
}
SERVERS = {"kafka", "mysql", "minio", "tika", "etcd", "milvus", "elasticsearch"}
ONCE = {"migrate", "topics", "first-key"}
WATCHING = {"prometheus", "grafana", "otel-collector"}
PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def compose(file: Path, secrets: set[str] = SECRETS) -> tuple[int, str]:
    """Without the .env of this folder."""
    env = PLAIN | {name: f"{name.lower().replace('_', '')}secret" for name in secrets}
    command = (tool("docker-compose"), "--env-file", "/dev/null", "--project-directory", ROOT)
    profile = ("--profile", "observability")
    return run(*command, "-f", file, *profile, "config", "--format", "json", env=env)


@cache
def services() -> dict[str, Any]:
    code, said = compose(FILE)
    assert code == 0, said
    found: dict[str, Any] = json.loads(said)["services"]
    return found


def platform() -> dict[str, Any]:
    return {
        name: each for name, each in services().items() if name not in SERVERS | ONCE | WATCHING
    }


def test_every_service_and_server_is_there() -> None:
    modules = {each["build"]["args"]["SERVICE"] for each in platform().values()}
    assert modules == service_modules()
    assert set(services()) >= SERVERS | ONCE | WATCHING


@pytest.mark.parametrize("missing", sorted(SECRETS))
def test_a_missing_secret_is_refused_by_its_name(missing: str) -> None:
    code, said = compose(FILE, SECRETS - {missing})
    assert code != 0
    assert f"required variable {missing} is missing" in said


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("stop_grace_period: 40s", "stop_grace_period: soon"),
        ("cap_drop: [ALL]", "cap_drops: [ALL]"),
        ("networks: [inside]", "networks: [nowhere]"),
        ("kafka: {condition: service_healthy}", "kafkaa: {condition: service_healthy}"),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    faulty = tmp_path / "docker-compose.yml"
    text = FILE.read_text()
    assert right in text
    faulty.write_text(text.replace(right, wrong, 1))
    assert compose(faulty)[0] != 0


def test_every_variable_is_one_that_the_code_reads() -> None:
    known = variables_read()
    for name, each in (platform() | {job: services()[job] for job in ONCE}).items():
        assert set(each["environment"]) <= known, name


def test_jobs_are_commands_that_exist() -> None:
    from typer.testing import CliRunner

    from services.cli.__main__ import app

    for job in ONCE:
        help_of = CliRunner().invoke(app, [*services()[job]["command"], "--help"])
        assert help_of.exit_code == 0, job


def test_only_loopback_is_published_and_nothing_of_the_servers() -> None:
    published = {name: each["ports"] for name, each in services().items() if "ports" in each}
    assert set(published) == {"gateway", "prometheus", "grafana"}
    assert {port["host_ip"] for ports in published.values() for port in ports} == {"127.0.0.1"}


def test_images_are_pinned_and_memory_is_bounded() -> None:
    for name, each in services().items():
        tag = each["image"].rpartition(":")[2]
        assert tag == "local" if "build" in each else any(c.isdigit() for c in tag), name
        assert int(each["mem_limit"]) > 0, name


def test_processes_are_confined() -> None:
    for name, each in (platform() | {job: services()[job] for job in ONCE}).items():
        assert each["read_only"], name
        assert each["init"], name
        assert each["cap_drop"] == ["ALL"], name
        assert each["security_opt"] == ["no-new-privileges:true"], name


def test_they_wait_for_healthy_servers_and_for_jobs_that_ended() -> None:
    for name, each in services().items():
        for other, wait in each.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if other in ONCE else "service_healthy"
            assert wait["condition"] == wanted, f"{name} waits for {other}"
            if wanted == "service_healthy" and "build" not in services()[other]:
                assert services()[other]["healthcheck"]["test"], other


def test_every_process_may_have_replicas() -> None:
    for name, each in platform().items():
        assert "container_name" not in each, name
        assert name == "gateway" or "ports" not in each, name


def test_a_process_may_drain_before_it_is_killed() -> None:
    for name, each in platform().items():
        assert seconds(each["stop_grace_period"]) > FlowPolicy().drain_timeout_s + 15, name


def seconds(duration: str) -> float:
    minutes, _, rest = duration.rpartition("m")
    return 60 * float(minutes or 0) + float(rest.rstrip("s") or 0)


def test_prometheus_asks_every_process() -> None:
    (job,) = read_yaml(OBSERVABILITY / "prometheus.yml")["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    assert set(found["names"]) == set(platform())


def test_a_new_env_file_has_another_secret_each_and_is_never_made_twice(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    for name in (".env.example", "deploy/new-env.sh"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    assert run("sh", "deploy/new-env.sh", folder=tmp_path)[0] == 0
    made = tmp_path / ".env"
    lines = (line.partition("=") for line in made.read_text().splitlines() if line[:1] not in "#")
    values = {name: value for name, _, value in lines}
    assert set(values) == SECRETS
    assert len(set(values.values())) == len(SECRETS)
    assert min(len(value) for value in values.values()) >= 32
    assert made.stat().st_mode & 0o077 == 0
    before = made.read_bytes()
    assert run("sh", "deploy/new-env.sh", folder=tmp_path)[0] == 1
    assert made.read_bytes() == before


@pytest.mark.parametrize("guide", ["README.md", "deploy/README.md"])
def test_guides_say_how_much_memory_it_may_take(guide: str) -> None:
    lasting = (each for name, each in services().items() if name not in ONCE | WATCHING)
    total = sum(int(each["mem_limit"]) for each in lasting) / 2**30
    assert f"{total:.1f} GB" in (ROOT / guide).read_text()
