from libs.service.settings import PlatformSettings
from services.chunker.settings import ChunkerSettings
from services.executor.settings import ExecutorSettings
from services.gateway.settings import GatewaySettings
from services.orchestrator.settings import OrchestratorSettings


def test_services_that_a_person_waits_for_ask_the_broker_often() -> None:
    patient = PlatformSettings().kafka_fetch_wait_s
    assert ChunkerSettings().kafka_fetch_wait_s == patient
    for hasty in (ExecutorSettings(), GatewaySettings(), OrchestratorSettings()):
        assert hasty.kafka_fetch_wait_s <= patient / 5
