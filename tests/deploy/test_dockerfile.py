"""deploy/Dockerfile under hadolint, which is seen to find a fault."""

from pathlib import Path

from tests.deploy.repository import ROOT
from tests.deploy.tools import run, tool

DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def test_hadolint_finds_nothing() -> None:
    assert run(tool("hadolint"), "--no-color", DOCKERFILE) == (0, "")


def test_hadolint_finds_a_planted_fault(tmp_path: Path) -> None:
    faulty = tmp_path / "Dockerfile"
    faulty.write_text(DOCKERFILE.read_text().replace("WORKDIR /app", "WORKDIR app"))
    code, said = run(tool("hadolint"), "--no-color", faulty)
    assert code != 0
    assert "DL3000" in said


def test_processes_run_without_root_and_get_signals() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER 10001:10001"]
    (entry,) = [line for line in lines if line.startswith("ENTRYPOINT")]
    assert entry == 'ENTRYPOINT ["python", "/app/start.py"]'  # no shell between
