"""What can be wrong before anything starts is named, with what to set."""

import os
import socket
from pathlib import Path

import pytest

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
