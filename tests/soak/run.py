"""One soak run: a stack with a short memory, a load in fast forward, samples, and the audit."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

from libs.kernel import now_us
from libs.storage.sql.retention import DAY_S
from services.local.preload import SERVICES
from tests.chaos.audit import Findings
from tests.chaos.load import Ledger
from tests.chaos.model import answering_model
from tests.chaos.patience import PatientClient
from tests.chaos.run import SWEEPS, audited
from tests.e2e.stack import Stack
from tests.ports import free_range
from tests.soak.levels import Ceiling, Level, Tolerance, level
from tests.soak.load import SteadyLoad, draw
from tests.soak.sampling import (
    CHILDREN,
    FDS,
    MEMORY,
    ROWS,
    TASKS,
    THREADS,
    TOPICS,
    Sampler,
    passing_rows,
)
from tests.standins.llm import MODEL

EMBEDDINGS = Path(__file__).parents[1] / "standins" / "embeddings"
TOLERANCES = {
    FDS: Tolerance(0.05, 5),
    THREADS: Tolerance(0.10, 4),
    TASKS: Tolerance(0.10, 6),
    CHILDREN: Tolerance(0, 1),
    ROWS: Tolerance(1.0, 100),  # follows the load's pace; in the end all of them must go
    TOPICS: Tolerance(0, 0),
}
# The broker takes more until it is recycled: at twice its bound, which is looked at every 5 s.
BROKER_HEADROOM_MB = 16
STAYING_ROWS = 30  # leases and heartbeats of who is there


@dataclass(frozen=True, slots=True)
class Size:
    documents: int  # a twentieth of them is the library that is asked about
    turns: int
    broker_max_mb: int
    sample_s: float
    kept_s: float  # finished rows
    memory: Tolerance
    least_recycled: int = 0  # times that the broker must have been
    patience_s: float = 300.0
    held: Tolerance | None = None  # of files, threads and tasks, in place of each one's own


FULL = Size(
    documents=2_000,
    turns=500,
    broker_max_mb=24,
    sample_s=3.0,
    kept_s=30.0,
    memory=Tolerance(0.15, 15),
    least_recycled=1,
)
# Half of the load lies between what is compared: one more with each turn is 25, with each document
# 37. Pools of threads and connections are still being filled by then, as many as ever meet.
SMALL_HELD = Tolerance(0.05, 15)
SMALL = Size(
    documents=75,
    turns=50,
    broker_max_mb=512,
    sample_s=0.5,
    kept_s=10.0,
    memory=Tolerance(1.0, 50),
    held=SMALL_HELD,
)


@dataclass(slots=True)
class Outcome:
    size: Size
    levels: list[Level] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    left_rows: dict[str, int] = field(default_factory=dict)  # that should have gone
    recycled: int = 0  # times that the broker was
    load_s: float = 0.0
    seconds: float = 0.0

    @property
    def growing(self) -> list[Level]:
        return [each for each in self.levels if each.grows]

    @property
    def good(self) -> bool:
        wrong = self.growing or self.findings.faults or self.left_rows
        return not wrong and self.recycled >= self.size.least_recycled


async def run(
    seed: int, size: Size, home: Path, tell: Callable[[str], None] = lambda _: None
) -> Outcome:
    """`tell` hears now and then how far it is. Raises: AssertionError: the stack did not start."""
    began = monotonic()
    outcome = Outcome(size)
    health_port = free_range(len(SERVICES))
    with answering_model(pause_s=0.01) as model:
        stack = Stack(home, _environment(size, health_port, model.base_url))
        await asyncio.to_thread(stack.start)
        try:
            key = (home / "api-key").read_text().strip()
            client = PatientClient(stack.url, key, patience_s=size.patience_s)
            load = SteadyLoad(client, draw(seed, documents=size.documents, turns=size.turns))
            await load.fill_library()
            async with _beside(_days_pass(home, size.kept_s)):
                sampler = Sampler(stack, health_port)
                async with _beside(sampler.run(size.sample_s), _report(load, tell)):
                    loaded = monotonic()
                    await load.run()
                    outcome.load_s = monotonic() - loaded
                outcome.findings = await audited(
                    stack,
                    _worth_a_look(load.ledger),
                    client,
                    patience_s=size.patience_s,
                    whole_streams=False,
                )
                outcome.levels = _levels(sampler, await sampler.at_rest(), size)
                outcome.left_rows = await _left_rows(home, size)
            await sampler.close()
            outcome.recycled = stack.log.read_text().count("recycling the broker")
            await client.close()
        finally:
            await asyncio.to_thread(stack.stop)
            outcome.seconds = monotonic() - began
    return outcome


def _environment(size: Size, health_port: int, model_url: str) -> dict[str, str]:
    passing = ("TURN_EVENTS", "MODEL_CALLS", "DEAD_LETTERS", "IDEMPOTENCY_KEYS")
    return {
        **SWEEPS,
        **{f"SLUICE_KEEP_{name}_DAYS": str(size.kept_s / DAY_S) for name in passing},
        "SLUICE_HOUSEKEEPING_S": "2",
        "SLUICE_STALE_SWEEP_S": "5",
        "SLUICE_PROGRESS_POLL_S": "1",
        "SLUICE_HEALTH_PORT": str(health_port),
        "SLUICE_BROKER_MAX_MB": str(size.broker_max_mb),
        "PYTHONPATH": str(EMBEDDINGS),
        "LLM_BASE_URL": model_url,
        "LLM_MODEL": MODEL,
    }


def _levels(sampler: Sampler, rest: Mapping[tuple[str, str], float], size: Size) -> list[Level]:
    levels = []
    rules = {**TOLERANCES, MEMORY: size.memory}
    if size.held is not None:
        rules |= dict.fromkeys((FDS, THREADS, TASKS), size.held)
    for (owner, resource), series in sorted(sampler.series.items()):
        rule: Tolerance | Ceiling = rules[resource]
        if (owner, resource) == ("broker", MEMORY):
            rule = Ceiling(2 * size.broker_max_mb + BROKER_HEADROOM_MB)
        at_rest = rest.get((owner, resource), series[-1][1])
        levels.append(level(owner, resource, series, rule, at_rest))
    return levels


def _worth_a_look(ledger: Ledger) -> Ledger:
    """What is there, what went wrong, and some of what is gone, as each is searched for."""
    seen = [
        entry
        for number, entry in enumerate(ledger.documents)
        if entry.living or entry.stuck or number % 20 == 0
    ]
    return replace(ledger, documents=seen)


async def _left_rows(home: Path, size: Size) -> dict[str, int]:
    """The rows that are there when all of them had the time to go; empty: few enough."""
    deadline = monotonic() + size.kept_s + 60
    while True:
        rows = await asyncio.to_thread(passing_rows, home)
        if sum(rows.values()) <= STAYING_ROWS:
            return {}
        if monotonic() > deadline:
            return rows
        await asyncio.sleep(1)


@asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run this for as long as the block lasts. Raises: an ExceptionGroup of what it raised."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        yield
        for task in tasks:
            task.cancel()


async def _report(load: SteadyLoad, tell: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(30)
        tell(load.progress)


async def _days_pass(home: Path, kept_s: float) -> None:
    """The time for which sent events are kept is an hour at the least: make them that old."""
    while True:
        await asyncio.sleep(2)
        await asyncio.to_thread(_age_sent_events, home, kept_s)


def _age_sent_events(home: Path, kept_s: float) -> None:
    now, day_us = now_us(), int(DAY_S * 1e6)
    with closing(sqlite3.connect(home / "sluice.db", timeout=30, isolation_level=None)) as sql:
        sql.execute(
            "UPDATE outbox SET sent_at = sent_at - ? WHERE sent_at BETWEEN ? AND ?",
            (2 * day_us, now - day_us, now - int(kept_s * 1e6)),
        )
