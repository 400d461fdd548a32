"""What a running stack holds, looked at from outside again and again."""

import asyncio
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import psutil
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from libs.storage.sql.retention import PASSING_TYPES
from services.local.preload import SERVICES
from tests.e2e.stack import Stack
from tests.soak.levels import Series

MEMORY, FDS, THREADS, TASKS, CHILDREN = "memory MB", "fds", "threads", "tasks", "children"
REST_S = 6.0
ROWS, TOPICS = "rows that are to go", "topics"
# What retention ends. What people own (documents, turns and their ends) stays.
_PASSING = {
    "outbox": "true",
    "turn_events": f"type IN {PASSING_TYPES}",
    "model_calls": "true",
    "dead_letters": "redriven_at IS NOT NULL",
    "idempotency_keys": "true",
    "leases": "true",
    "workers": "true",
}
_TASKS = re.compile(r"^event_loop_tasks (\S+)$", re.MULTILINE)


class Sampler:
    """Takes samples of every process, of the retained tables and of the broker's topics.

    A process that was started again goes on in the series of its name.
    """

    def __init__(self, stack: Stack, health_port: int) -> None:
        self.series: dict[tuple[str, str], Series] = defaultdict(Series)  # by owner and resource
        self._stack = stack
        self._health_port = health_port
        self._http = httpx.AsyncClient(timeout=2.0, trust_env=False)

    async def run(self, every_s: float) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            for key, value in (await self._sample()).items():
                self.series[key].append((loop.time() - began, value))
            await asyncio.sleep(every_s)

    async def at_rest(self) -> dict[tuple[str, str], float]:
        """What is held now that nothing is asked for: the least of some samples."""
        await asyncio.sleep(REST_S)  # kept connections of those who asked last are closed
        samples = [await self._sample() for _ in range(3)]
        return {
            key: min(each.get(key, value) for each in samples) for key, value in samples[0].items()
        }

    async def close(self) -> None:
        await self._http.aclose()

    async def _sample(self) -> dict[tuple[str, str], float]:
        found = await asyncio.to_thread(lambda: [*self._processes(), *self._rows()])
        found += await self._tasks()
        found += await self._topics()
        return {(owner, resource): value for owner, resource, value in found}

    def _processes(self) -> Iterator[tuple[str, str, float]]:
        assert self._stack.process is not None
        names = {pid: name for name, pid in self._stack.processes().items() if name != "prepare"}
        children: dict[str, list[psutil.Process]] = {name: [] for name in names.values()}
        names[self._stack.process.pid] = "supervisor"
        for process in [psutil.Process(self._stack.process.pid), *self._stack.family()]:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if (name := names.get(process.pid)) is not None:
                    yield name, MEMORY, _memory_mb(process)
                    yield name, FDS, process.num_fds()
                    yield name, THREADS, process.num_threads()
                elif (parent := names.get(process.ppid())) in children:
                    children[parent].append(process)
        for name, found in children.items():
            yield name, CHILDREN, len(found)
            if found:
                yield f"{name}'s children", MEMORY, sum(map(_memory_mb, found))

    def _rows(self) -> Iterator[tuple[str, str, float]]:
        for table, count in passing_rows(self._stack.home).items():
            yield table, ROWS, count

    async def _tasks(self) -> list[tuple[str, str, float]]:
        asked = [self._task_count(place) for place in range(len(SERVICES))]
        counts = await asyncio.gather(*asked)
        return [
            (name.replace("-", "_"), TASKS, count)
            for name, count in zip(SERVICES, counts, strict=True)
            if count is not None
        ]

    async def _task_count(self, place: int) -> float | None:
        url = f"http://127.0.0.1:{self._health_port + place}/metrics"
        with suppress(httpx.TransportError):
            found = _TASKS.search((await self._http.get(url)).text)
            assert found is not None
            return float(found[1])
        return None

    async def _topics(self) -> list[tuple[str, str, float]]:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=f"127.0.0.1:{self._stack.ports[2]}", request_timeout_ms=2_000
        )
        try:
            async with asyncio.timeout(3):
                await admin.start()
                return [("broker", TOPICS, len(await admin.list_topics()))]
        except (KafkaError, OSError, TimeoutError):
            return []  # it is being recycled
        finally:
            await admin.close()


def passing_rows(home: Path) -> dict[str, int]:
    """How many rows each table holds that are to go some time after they were written."""
    with closing(sqlite3.connect(f"file:{home / 'sluice.db'}?mode=ro", uri=True)) as sql:
        return {
            table: sql.execute(f"SELECT count(*) FROM {table} WHERE {which}").fetchone()[0]  # noqa: S608
            for table, which in _PASSING.items()
        }


def _memory_mb(process: psutil.Process) -> float:
    """The process's share (PSS), as forked services share what they imported; else its RSS."""
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        memory = process.memory_full_info()
        return float(getattr(memory, "pss", memory.rss)) / 1e6
    return 0.0
