"""What is broken during a chaos run: a schedule drawn from a seed, and the hands that do it."""

import asyncio
import os
import random
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.e2e.stack import Stack
from tests.servers.frame import Server

WORKERS = ("parser", "chunker", "indexer", "orchestrator", "executor", "memory_compactor")
SERVICES = ("gateway", "ingest", *WORKERS)
BROKER, MILVUS, SUPERVISOR, EMBEDDER = "broker", "milvus", "supervisor", "embedding worker"
KILL, TERM, STOP = "kill -9", "SIGTERM", "SIGSTOP"


@dataclass(frozen=True, slots=True)
class Fault:
    """One blow. `for_s`: how long a SIGSTOP lasts, or until a server is started again; anything
    else the supervisor starts again.
    """

    at_s: float
    victim: str
    blow: str
    for_s: float = 0.0

    def __str__(self) -> str:
        lasts = f" for {self.for_s:.0f} s" if self.for_s else ""
        return f"{self.at_s:6.1f} s  {self.blow:8} {self.victim}{lasts}"


@dataclass(frozen=True, slots=True)
class Victims:
    """What there is to break. Servers are those that the supervisor doesn't start."""

    processes: Sequence[str]
    embedded: Sequence[str] = ()
    servers: Sequence[str] = ()

    @property
    def kinds(self) -> list[tuple[str, str]]:
        names = (*self.processes, *self.embedded, *self.servers)
        every = [(name, blow) for name in names for blow in (KILL, TERM, STOP)]
        every += [(EMBEDDER, KILL), (EMBEDDER, STOP)]
        return [each for each in every if each != (BROKER, TERM)]  # it knows no good end


def draw(seed: int, victims: Victims, *, seconds: float, count: int) -> list[Fault]:
    """`count` faults over `seconds`: a shuffled round of every kind, then another one.

    However few there are: embedded parts are killed first, each server at some time, and the
    supervisor in the middle of the run.
    """
    rng = random.Random(f"faults {seed}")  # noqa: S311 - repeatable on purpose
    blows = [(name, KILL) for name in victims.servers]
    while len(blows) < count:
        kinds = victims.kinds
        rng.shuffle(kinds)
        blows += kinds
    if victims.servers:
        blows = blows[: count - 1]
        rng.shuffle(blows)
        blows.insert(count // 2, (SUPERVISOR, KILL))
    else:
        blows[: len(victims.embedded)] = [(name, KILL) for name in victims.embedded]
        blows[count // 2] = (SUPERVISOR, KILL)
    gap_s = seconds / count
    return [
        Fault(
            (at + rng.uniform(0.1, 0.9)) * gap_s,
            victim,
            blow,
            rng.uniform(2, 14) if blow == STOP or victim in victims.servers else 0.0,
        )
        for at, (victim, blow) in enumerate(blows[:count])
    ]


class Saboteur:
    """Breaks one running stack, and the servers it stands on, by a schedule."""

    def __init__(self, stack: Stack, servers: Mapping[str, Server]) -> None:
        self._stack = stack
        self._servers = servers
        self._away: set[str] = set()  # servers
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
            elif not (
                self._hit_server(fault) if fault.victim in self._servers else self._hit(fault)
            ):
                self.missed.append(fault)
        await asyncio.gather(*self._waking)

    async def keep_servers(self) -> None:
        """Starts again what ended by itself, as Docker and Kubernetes do; never returns."""
        while True:
            for name, server in self._servers.items():
                if name not in self._away and server.ended:
                    server.launch()
            await asyncio.sleep(1)

    def _hit_server(self, fault: Fault) -> bool:
        """False when it is still away by an earlier fault."""
        if fault.victim in self._away:
            return False
        self._away.add(fault.victim)
        self._waking.append(asyncio.create_task(self._break_server(fault)))
        return True

    async def _break_server(self, fault: Fault) -> None:
        server = self._servers[fault.victim]
        if fault.blow == STOP:
            server.freeze()
            await asyncio.sleep(fault.for_s)
            server.thaw()
        else:
            await asyncio.to_thread(server.kill if fault.blow == KILL else server.stop)
            await asyncio.sleep(fault.for_s)
            server.launch()
        self._away.remove(fault.victim)

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
