"""Images hold what services need, exactly as it is locked, and nothing of the development group."""

import re
import tomllib

import pytest

from deploy.container.runtime_lock import runtime_lock
from tests.deploy.repository import ROOT

LOCK = (ROOT / "requirements.lock").read_text()


def names(text: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE))


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", name)[0].lower() for name in requirements}


def test_every_dependency_is_there_and_no_tool_of_developers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    kept = names(runtime_lock(LOCK))
    needed = declared(project["project"]["dependencies"])
    assert needed <= kept
    assert not kept & {"pytest", "mypy", "ruff", "hypothesis", "uv", "schemathesis", "setuptools"}


def test_what_a_dependency_of_a_dependency_needs_is_kept() -> None:
    assert {"starlette", "pydantic-core", "h11", "anyio"} <= names(runtime_lock(LOCK))


def test_entries_are_the_locked_ones_with_their_hashes() -> None:
    kept = runtime_lock(LOCK)
    blocks = re.split(r"^(?=[a-z0-9])", kept, flags=re.MULTILINE)
    assert all(block in LOCK for block in blocks)
    assert all("--hash=sha256:" in block for block in blocks if block)


def test_a_lock_that_does_not_say_who_asked_is_refused() -> None:
    with pytest.raises(ValueError, match="httpx"):
        runtime_lock("httpx==1.0 \\\n    --hash=sha256:00\n")
