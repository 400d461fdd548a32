"""Imports that every child would pay for: done once, in the parent they are forked from."""

import gc
import importlib
import logging
import os

# Names, not imports: the supervisor starts services, it does not use them.
SERVICES: dict[str, str] = {
    "ingest": "services.ingest.api.__main__",
    "parser": "services.ingest.parser.__main__",
    "chunker": "services.chunker.__main__",
    "indexer": "services.indexer.__main__",
    "orchestrator": "services.orchestrator.__main__",
    "executor": "services.executor.__main__",
    "memory-compactor": "services.memory_compactor.__main__",
    "gateway": "services.gateway.__main__",
}
# Of these there may be several processes; the others listen on a port.
WORKERS = frozenset(SERVICES) - {"ingest", "gateway"}
VECTOR_SERVER = "services.local.vector_server"


def preload(*modules: str) -> None:
    """Import them with all they use, and freeze what is there so that forks share the pages."""
    logging.disable(logging.INFO)  # libraries greet on import
    for module in modules:
        importlib.import_module(module)
    logging.disable(logging.NOTSET)
    gc.collect()
    gc.freeze()


def run_service(name: str, health_port: int | None = None) -> None:
    """The blocking entry of one service, in a process of its own."""
    if health_port is not None:
        os.environ["SLUICE_HEALTH_PORT"] = str(health_port)
    importlib.import_module(SERVICES[name]).run()
