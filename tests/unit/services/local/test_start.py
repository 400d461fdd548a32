"""What can be wrong before anything starts is named, with what to set."""

import errno
import io
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console

from services.local.console import StackConsole
from services.local.home import HomeError, claim
from services.local.ports import NeededPort, PortBusyError, check_free
from services.local.preload import SERVICES
from services.local.settings import LocalSettings
from services.local.stack import needed_ports


def test_a_busy_port_is_named_with_its_owner_and_setting() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortBusyError) as caught:
            check_free([NeededPort(port, "gateway", "SLUICE_PORT")])
    message = str(caught.value)
    assert f"port {port} (gateway)" in message
    assert f"pid {os.getpid()}" in message
    assert "SLUICE_PORT" in message
    check_free([NeededPort(port, "gateway", "SLUICE_PORT")])


def test_one_data_folder_belongs_to_one_stack(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with claim(home), pytest.raises(HomeError, match=rf"in use .*pid {os.getpid()}.*SLUICE_HOME"):
        claim(home)
    claim(home).close()
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.write_text("")
    with pytest.raises(HomeError, match="set SLUICE_HOME"):
        claim(file)


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "make it writable")],
)
def test_a_data_folder_that_cannot_be_written_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    def mkdir(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    home = tmp_path / "home"
    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(HomeError) as caught:
        claim(home)
    for part in (str(home), advice, "SLUICE_HOME"):
        assert part in str(caught.value)


def test_a_stack_that_cannot_start_says_why_and_exits_with_3(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.write_text("")
    ended = subprocess.run(
        [sys.executable, "-m", "services.cli", "up"],
        env={**os.environ, "SLUICE_HOME": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    assert f"cannot use the data folder {file}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_folder_that_became_full_is_still_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    claim(home).close()

    def write(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        lock = claim(home)
    with lock, pytest.raises(HomeError, match="in use"):
        claim(home)


def test_a_console_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    full = Path("/dev/full").open("w")  # noqa: SIM115 - closing it fails as well
    console = StackConsole(Console(file=full))
    console.note("starting")
    console.waiting(["ingest (disk)"])
    console.failed("parser ended", tmp_path / "parser.log", ["why"])
    with suppress(OSError):
        full.close()


def test_a_disk_that_is_waited_for_comes_with_what_to_do() -> None:
    said = io.StringIO()
    StackConsole(Console(file=said)).waiting(["ingest (disk)"])
    assert "free some space" in said.getvalue()


def test_a_configured_server_replaces_the_embedded_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.delenv("MILVUS_URI", raising=False)
    assert LocalSettings().child_environment()["KAFKA_BOOTSTRAP"] == "127.0.0.1:19092"
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "kafka.example:9092")
    settings = LocalSettings()
    assert not settings.embeds_broker
    assert settings.embeds_milvus
    assert "KAFKA_BOOTSTRAP" not in settings.child_environment()


def test_every_service_can_tell_of_itself_on_a_port_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SLUICE_HEALTH_PORT", raising=False)
    assert "SLUICE_HEALTH_PORT" not in {port.setting for port in needed_ports(LocalSettings())}
    monkeypatch.setenv("SLUICE_HEALTH_PORT", "9100")
    settings = LocalSettings()
    health = {
        p.number: p.owner for p in needed_ports(settings) if p.setting == "SLUICE_HEALTH_PORT"
    }
    assert list(health) == list(range(9100, 9100 + len(SERVICES)))
    for place, name in enumerate(SERVICES):
        assert health[settings.health_port_of(place) or 0] == f"health of {name}"


def test_a_bound_that_an_empty_broker_exceeds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_BROKER_MAX_MB", "24")
    assert LocalSettings().broker_max_mb == 24
    monkeypatch.setenv("SLUICE_BROKER_MAX_MB", "23")
    with pytest.raises(ValidationError, match="SLUICE_BROKER_MAX_MB"):
        LocalSettings()
