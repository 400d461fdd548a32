"""Which processes `sluice up` starts."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from services.local.preload import SERVICES
from services.local.settings import LocalSettings
from services.local.stack import needed_ports, processes

ELASTIC = "http://user:secret@elastic:9200"


def settings(tmp_path: Path, **more: object) -> LocalSettings:
    return LocalSettings.model_validate({"home": tmp_path, **more})


def test_one_process_of_each_service_unless_told_otherwise(tmp_path: Path) -> None:
    assert processes(settings(tmp_path)) == [(name, name) for name in SERVICES]


def test_replicas_are_further_processes_of_all_but_those_that_listen(tmp_path: Path) -> None:
    started = processes(settings(tmp_path, replicas=3, elasticsearch_url=ELASTIC))
    assert len({name for name, _ in started}) == len(started)
    counts = {service: sum(of == service for _, of in started) for service in SERVICES}
    workers = ("parser", "chunker", "indexer", "orchestrator", "executor", "memory-compactor")
    assert counts == {"ingest": 1, "gateway": 1, **dict.fromkeys(workers, 3)}


def test_every_replica_has_a_port_for_its_health(tmp_path: Path) -> None:
    told = settings(tmp_path, replicas=2, elasticsearch_url=ELASTIC, health_port=9100)
    found = needed_ports(told)
    ports = {each.number: each.owner for each in found if each.owner.startswith("health")}
    assert ports[9100 + len(SERVICES) - 1] == "health of gateway"
    assert ports[9100 + len(SERVICES)] == "health of parser-2"
    assert len(ports) == len(processes(told))


def test_replicas_need_a_keyword_index_that_several_can_write(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="ELASTICSEARCH_URL"):
        settings(tmp_path, replicas=2)
