"""Whether a document could be uploaded and a question answered now, and what it lacks if not."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from sqlalchemy import RowMapping

from libs.kernel import TransientError
from libs.service.health import Health
from libs.storage.sql import Database, workers

# One fresh, ready process of each; the memory compactor is not here: answers do without it.
NEEDED = ("ingest", "parser", "chunker", "indexer", "orchestrator", "executor")
FRESH_S = 1.0  # asked more often, the last finding is good enough


class Readiness:
    """Asks SQL who lives, the process itself what it waits for, and search whether it finds."""

    def __init__(
        self,
        db: Database,
        health: Health,
        probe: Callable[[], Awaitable[object]],
        *,
        probe_timeout_s: float = 2.0,
    ) -> None:
        """`probe` searches once; it raises TransientError when a search backend is away."""
        self._db = db
        self._health = health
        self._probe = probe
        self._probe_timeout_s = probe_timeout_s
        self._lock = asyncio.Lock()
        self._found: list[str] = []
        self._found_at = -math.inf

    async def missing(self) -> list[str]:
        """Names, sorted; empty: ready. `service (what it waits for)` where a process says so."""
        async with self._lock:
            if time.monotonic() - self._found_at > FRESH_S:
                services, search = await asyncio.gather(self._services(), self._search())
                self._found = sorted({*self._health.missing, *services, *search})
                self._found_at = time.monotonic()
            return self._found

    async def _services(self) -> list[str]:
        try:
            async with self._db.reading() as sql:
                living = await workers.living(sql)
        except TransientError:
            return ["sql"]
        return [lack for name in NEEDED if (lack := _lack(name, living))]

    async def _search(self) -> list[str]:
        try:
            async with asyncio.timeout(self._probe_timeout_s):
                await self._probe()
        except (TransientError, TimeoutError):
            return ["search"]
        return []


def _lack(service: str, living: list[RowMapping]) -> str:
    """What keeps a service from working; '' when one of its processes is ready."""
    rows = [row for row in living if row["service"] == service]
    if any(row["ready"] for row in rows):
        return ""
    waits_for = sorted({name for row in rows for name in row["missing"]})
    return f"{service} ({', '.join(waits_for)})" if waits_for else service
