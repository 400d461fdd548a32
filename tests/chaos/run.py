"""One chaos run: a stack, a load, a schedule of faults, and the audit at the end."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from tests.chaos import faults, wishes
from tests.chaos.audit import Findings, audit, open_stores, settled
from tests.chaos.load import Ledger, Load
from tests.chaos.model import answering_model
from tests.chaos.patience import PatientClient
from tests.e2e.stack import Stack
from tests.servers.full import FullSize
from tests.standins.llm import MODEL

# Sweepers look often here, as nobody wants to wait an hour for what they would remove.
SWEEPS = {
    "SLUICE_ORPHAN_SWEEP_S": "5",
    "SLUICE_ORPHAN_AGE_S": "20",
    "SLUICE_STALE_SWEEP_S": "5",
}
AUDIT_PATIENCE_S = 90.0


@dataclass(frozen=True, slots=True)
class Size:
    documents: int
    turns: int
    faults: int
    seconds: float  # the load and the faults are spread over it
    patience_s: float = 400.0  # what is not done this long after is stuck


LARGE = Size(documents=200, turns=200, faults=40, seconds=200.0)
SMALL = Size(documents=24, turns=20, faults=9, seconds=45.0)
# Servers need up to half a minute to be back.
LARGE_ON_SERVERS = Size(documents=200, turns=200, faults=48, seconds=360.0, patience_s=600.0)
SMALL_ON_SERVERS = Size(documents=24, turns=20, faults=12, seconds=90.0)
REPLICAS = 2  # of every worker, on full-size servers


@dataclass(slots=True)
class Outcome:
    seed: int
    schedule: list[faults.Fault]
    missed: list[faults.Fault] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    findings: Findings = field(default_factory=Findings)
    seconds: float = 0.0


async def run(seed: int, size: Size, home: Path, servers: FullSize | None = None) -> Outcome:
    """The first half of the turns is answered without a model, the second with one: the
    supervisor's end in the middle brings it.

    Args:
        servers: What the stack stands on, all of them victims; None: on its embedded parts.
    """
    began = monotonic()
    victims = _victims(servers)
    schedule = faults.draw(seed, victims, seconds=size.seconds, count=size.faults)
    wanted = wishes.draw(seed, documents=size.documents, turns=size.turns, seconds=size.seconds)
    outcome = Outcome(seed, schedule)
    on_servers = {**servers.settings, "SLUICE_REPLICAS": str(REPLICAS)} if servers else {}
    stack = Stack(home, {**SWEEPS, **on_servers})
    await asyncio.to_thread(stack.start)
    try:
        with answering_model() as model:
            key = (home / "api-key").read_text().strip()
            client = PatientClient(stack.url, key, patience_s=size.patience_s)
            load = Load(client, wanted)
            outcome.ledger = load.ledger
            await load.fill_library()
            saboteur = faults.Saboteur(stack, servers.servers if servers else {})
            with_model = {"LLM_BASE_URL": model.base_url, "LLM_MODEL": MODEL}
            keeping = asyncio.create_task(saboteur.keep_servers())
            await asyncio.gather(load.run(), saboteur.run(schedule, with_model))
            outcome.missed = saboteur.missed
            outcome.findings = await audited(stack, load.ledger, client, patience_s=size.patience_s)
            keeping.cancel()
            await client.close()
    finally:
        await asyncio.to_thread(stack.stop)
        outcome.seconds = monotonic() - began
    return outcome


def _victims(servers: FullSize | None) -> faults.Victims:
    if servers is None:
        return faults.Victims(faults.SERVICES, embedded=(faults.BROKER, faults.MILVUS))
    further = [f"{name}-{number}" for number in range(2, REPLICAS + 1) for name in faults.WORKERS]
    return faults.Victims((*faults.SERVICES, *further), servers=tuple(servers.servers))


async def audited(
    stack: Stack,
    ledger: Ledger,
    client: PatientClient,
    *,
    patience_s: float,
    whole_streams: bool = True,
) -> Findings:
    """Leftovers may be swept up for a while; what the last look finds is a fault."""
    loop = asyncio.get_running_loop()
    async with open_stores(stack) as stores:
        findings = await settled(stores, patience_s=patience_s)
        if findings.faults:
            return findings
        deadline = loop.time() + AUDIT_PATIENCE_S
        while True:
            findings = await audit(ledger, stores, client, whole_streams=whole_streams)
            if not findings.faults or loop.time() > deadline:
                return findings
            await asyncio.sleep(3)
