"""Whether a document could be uploaded and a question answered now, and what it lacks if not."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import chain

from sqlalchemy import RowMapping

from libs.kernel import TransientError
from libs.service.health import Health
from libs.storage.sql import Database, workers

# One fresh, ready process of each; the memory compactor is not here: answers do without it.
NEEDED = ("ingest", "parser", "chunker", "indexer", "orchestrator", "executor")
DISK = "disk"
FRESH_S = 1.0  # asked more often, the last finding is good enough


class Readiness:
    """Asks SQL who lives, the process what it waits for, and backends whether they answer."""

    def __init__(
        self,
        db: Database,
        health: Health,
        probes: Mapping[str, Callable[[], Awaitable[object]]],
        *,
        probe_timeout_s: float = 2.0,
    ) -> None:
        """`probes` use what they are named after once; TransientError says that it is away."""
        self._db = db
        self._health = health
        self._probes = probes
        self._probe_timeout_s = probe_timeout_s
        self._lock = asyncio.Lock()
        self._found: list[str] = []
        self._found_at = -math.inf

    async def missing(self) -> list[str]:
        """Names, sorted; empty: ready. `service (what it waits for)` where a process says so."""
        async with self._lock:
            if time.monotonic() - self._found_at > FRESH_S:
                self._found = sorted({*self._health.missing, *await self._look()})
                self._found_at = time.monotonic()
            return self._found

    async def _look(self) -> Iterable[str]:
        """Backends are looked up in SQL, so without it nothing is known but that."""
        living: list[RowMapping] = []

        async def ask_sql() -> None:
            async with self._db.reading() as sql:
                living.extend(await workers.living(sql))

        if away := await self._tried("sql", ask_sql):
            return away
        lacks = await asyncio.gather(*(self._tried(*probe) for probe in self._probes.items()))
        return chain(self._services(living), *lacks)

    def _services(self, living: list[RowMapping]) -> list[str]:
        silent_may_live = DISK in self._health.missing  # then nobody's heartbeat can be written
        return [
            lack
            for name in NEEDED
            if (lack := _lack(name, living)) and not (silent_may_live and lack == name)
        ]

    async def _tried(self, name: str, probe: Callable[[], Awaitable[object]]) -> list[str]:
        """What is missing when the probe fails, or takes too long."""
        try:
            async with asyncio.timeout(self._probe_timeout_s):
                await probe()
        except TransientError as exc:
            return [exc.missing or name]
        except TimeoutError:
            return [name]
        return []


def _lack(service: str, living: list[RowMapping]) -> str:
    """What keeps a service from working; '' when one of its processes is ready."""
    rows = [row for row in living if row["service"] == service]
    if any(row["ready"] for row in rows):
        return ""
    waits_for = sorted({name for row in rows for name in row["missing"]})
    return f"{service} ({', '.join(waits_for)})" if waits_for else service
