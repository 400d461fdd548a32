import errno
import os
from pathlib import Path

import pytest

from services.local.child import (
    FIRST_DELAY_S,
    MAX_DELAY_S,
    STABLE_S,
    Child,
    ChildSpec,
)


def make_child(tmp_path: Path) -> Child:
    pids = iter(range(100, 200))
    return Child(ChildSpec("worker", lambda _log: next(pids)), tmp_path)


def test_backoff_doubles_up_to_a_bound_and_resets_after_a_stable_run(tmp_path: Path) -> None:
    child = make_child(tmp_path)
    now, delays = 0.0, []
    child.start(now)
    for _ in range(9):
        delays.append(child.exited(now))
        now += delays[-1]
        assert child.start_if_due(now)
    assert delays[:3] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S]
    assert delays[-1] == MAX_DELAY_S
    assert child.exited(now + STABLE_S) == FIRST_DELAY_S


def test_nothing_starts_before_its_backoff_is_over(tmp_path: Path) -> None:
    child = make_child(tmp_path)
    child.start(0.0)
    child.exited(10.0)
    assert not child.start_if_due(10.0 + FIRST_DELAY_S / 2)
    assert child.pid is None
    assert child.start_if_due(10.0 + FIRST_DELAY_S)
    assert child.restarts == 1


def test_a_log_that_cannot_be_moved_aside_keeps_nothing_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    child = make_child(tmp_path)
    child.log_file.write_bytes(b"x")
    monkeypatch.setattr("services.local.child.MAX_LOG_BYTES", 0)
    monkeypatch.setattr(Path, "replace", replace)
    child.start(0.0)
    assert child.pid is not None
