"""Which processes make up the stack, and the ports they need."""

from functools import partial
from pathlib import Path

from services.local.child import Child, ChildSpec
from services.local.embedded import broker_command, serve_milvus
from services.local.ports import NeededPort
from services.local.preload import SERVICES, WORKERS, run_service
from services.local.settings import LocalSettings
from services.local.spawning import ParentWatch, fork_exec, fork_python

BROKER = "broker"
MILVUS = "milvus"


def needed_ports(settings: LocalSettings) -> list[NeededPort]:
    ports = [
        NeededPort(settings.gateway_port, "gateway", "SLUICE_PORT"),
        NeededPort(settings.ingest_port, "ingest", "SLUICE_INGEST_PORT"),
    ]
    if settings.embeds_broker:
        ports.append(NeededPort(settings.broker_port, "broker", "SLUICE_BROKER_PORT"))
    if settings.embeds_milvus:
        ports.append(NeededPort(settings.milvus_port, "Milvus Lite", "SLUICE_MILVUS_PORT"))
    for place, (name, _) in enumerate(processes(settings)):
        if (port := settings.health_port_of(place)) is not None:
            ports.append(NeededPort(port, f"health of {name}", "SLUICE_HEALTH_PORT"))
    return ports


def processes(settings: LocalSettings) -> list[tuple[str, str]]:
    """Each process of a service in the order of their start: its own name, and the service's."""
    further = [
        (f"{name}-{number}", name)
        for number in range(2, settings.replicas + 1)
        for name in SERVICES
        if name in WORKERS
    ]
    return [*((name, name) for name in SERVICES), *further]


def embedded_children(settings: LocalSettings, watch: ParentWatch, logs: Path) -> list[Child]:
    """The broker and the vector store, unless real servers are configured."""
    specs = []
    if settings.embeds_broker:
        command = broker_command(settings.broker_port)
        specs.append(ChildSpec(BROKER, partial(fork_exec, BROKER, command)))
    if settings.embeds_milvus:
        serve = partial(serve_milvus, settings.home / "milvus", settings.milvus_port)
        specs.append(ChildSpec(MILVUS, _forking(MILVUS, serve, watch)))
    return [Child(spec, logs) for spec in specs]


def service_children(settings: LocalSettings, watch: ParentWatch, logs: Path) -> list[Child]:
    specs = []
    for place, (name, service) in enumerate(processes(settings)):
        serve = partial(run_service, service, settings.health_port_of(place))
        specs.append(ChildSpec(name, _forking(name, serve, watch)))
    return [Child(spec, logs) for spec in specs]


def _forking(name: str, target: "partial[None]", watch: ParentWatch) -> "partial[int]":
    def spawn(log_file: Path) -> int:
        return fork_python(name, target, log_file, watch)

    return partial(spawn)
