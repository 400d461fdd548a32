from collections.abc import Iterator

import pytest

from libs.service.settings import PlatformSettings
from services.chunker.settings import ChunkerSettings
from services.cli.settings import CliSettings
from services.executor.settings import ExecutorSettings
from services.gateway.settings import GatewaySettings
from services.local.settings import LocalSettings
from services.orchestrator.settings import OrchestratorSettings


def test_services_that_a_person_waits_for_ask_the_broker_often() -> None:
    patient = PlatformSettings().kafka_fetch_wait_s
    assert ChunkerSettings().kafka_fetch_wait_s == patient
    for hasty in (ExecutorSettings(), GatewaySettings(), OrchestratorSettings()):
        assert hasty.kafka_fetch_wait_s <= patient / 5


def subclasses(of: type[PlatformSettings]) -> Iterator[type[PlatformSettings]]:
    for one in of.__subclasses__():
        yield one
        yield from subclasses(one)


def test_no_settings_show_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLM_API_KEY", "SLUICE_API_KEY", "MILVUS_TOKEN", "KAFKA_SASL_PASSWORD"):
        monkeypatch.setenv(name, "s3cret")
    for name in (
        *("DATABASE_URL", "MILVUS_URI", "ELASTICSEARCH_URL"),
        *("SCHEMA_REGISTRY_URL", "LLM_BASE_URL", "SLUICE_URL", "SLUICE_INGEST_URL"),
    ):
        monkeypatch.setenv(name, "scheme://somebody:s3cret@host:1/path")
    shown = {made: f"{made()!r} {made()}" for made in subclasses(PlatformSettings)}
    assert {CliSettings, GatewaySettings, LocalSettings} <= set(shown)
    for text in shown.values():
        assert "s3cret" not in text
        assert "scheme://somebody:[redacted]@host:1/path" in text
