"""What is broken during a chaos run: a schedule drawn from a seed, and the hands that do it."""

import asyncio
import os
import random
import signal
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.e2e.stack import Stack

SERVICES = (
    "gateway",
    "ingest",
    "parser",
    "chunker",
    "indexer",
    "orchestrator",
    "executor",
    "memory_compactor",
)
BROKER, MILVUS, SUPERVISOR, EMBEDDER = "broker", "milvus", "supervisor", "embedding worker"
KILL, TERM, STOP = "kill -9", "SIGTERM", "SIGSTOP"


@dataclass(frozen=True, slots=True)
class Fault:
    """One blow. `for_s`: how long a SIGSTOP lasts."""

    at_s: float
    victim: str
    blow: str
    for_s: float = 0.0

    def __str__(self) -> str:
        lasts = f" for {self.for_s:.0f} s" if self.for_s else ""
        return f"{self.at_s:6.1f} s  {self.blow:8} {self.victim}{lasts}"


def draw(seed: int, *, seconds: float, count: int) -> list[Fault]:
    """`count` faults over `seconds`: a shuffled round of every kind, then another one."""
    rng = random.Random(f"faults {seed}")  # noqa: S311 - repeatable on purpose
    blows: list[tuple[str, str]] = []
    while len(blows) < count:
        kinds = [(victim, blow) for victim in SERVICES for blow in (KILL, TERM, STOP)]
        kinds += [(BROKER, KILL), (BROKER, STOP), (MILVUS, KILL), (MILVUS, TERM), (MILVUS, STOP)]
        kinds += [(EMBEDDER, KILL), (EMBEDDER, STOP)]
        rng.shuffle(kinds)
        blows += kinds
    # Always among them, however few there are; the supervisor's end is the middle of the run.
    blows[0], blows[1], blows[count // 2] = (BROKER, KILL), (MILVUS, KILL), (SUPERVISOR, KILL)
    gap_s = seconds / count
    return [
        Fault(
            (at + rng.uniform(0.1, 0.9)) * gap_s,
            victim,
            blow,
            rng.uniform(2, 14) if blow == STOP else 0.0,
        )
        for at, (victim, blow) in enumerate(blows[:count])
    ]


class Saboteur:
    """Breaks one running stack by a schedule."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._waking: list[asyncio.Task[None]] = []
        self.missed: list[Fault] = []  # nobody there to hit, as in a restart

    async def run(self, schedule: list[Fault], restarted: dict[str, str]) -> None:
        """Until the last fault is over. `restarted`: the environment after the supervisor's end."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for fault in schedule:
            await asyncio.sleep(max(0.0, began + fault.at_s - loop.time()))
            if fault.victim == SUPERVISOR:
                self._stack.environment.update(restarted)
                await asyncio.to_thread(self._restart_all)
            elif not self._hit(fault):
                self.missed.append(fault)
        await asyncio.gather(*self._waking)

    def _hit(self, fault: Fault) -> bool:
        pid = self._pid(fault.victim)
        if pid is None:
            return False
        number = {KILL: signal.SIGKILL, TERM: signal.SIGTERM, STOP: signal.SIGSTOP}[fault.blow]
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            if fault.blow == STOP:
                self._waking.append(asyncio.create_task(_wake(pid, fault.for_s)))
            return True
        return False

    def _pid(self, victim: str) -> int | None:
        running = self._stack.processes()
        if victim != EMBEDDER:
            return running.get(victim)
        with suppress(psutil.NoSuchProcess, KeyError):
            workers = psutil.Process(running["indexer"]).children()
            return int(workers[0].pid) if workers else None
        return None

    def _restart_all(self) -> None:
        self._stack.kill()
        self._stack.start()


async def _wake(pid: int, after_s: float) -> None:
    await asyncio.sleep(after_s)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
