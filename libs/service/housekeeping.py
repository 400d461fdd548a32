"""The one sweep that removes what is no longer kept, in one process at a time."""

import asyncio
import random
from dataclasses import dataclass

import structlog

from libs.kernel import TransientError, new_id
from libs.storage.sql import Database
from libs.storage.sql.leases import acquire
from libs.storage.sql.retention import Retention, prune

log = structlog.get_logger(__name__)

LEASE = "housekeeping"


@dataclass(frozen=True, slots=True)
class HousekeepingPolicy:
    """How often, and in which bites, so that no writer waits for long."""

    interval_s: float = 60.0  # jittered
    batch: int = 500  # rows of one kind in one unit of work
    pause_s: float = 0.05  # between two units of work


class Housekeeper:
    """Runs in every process; the holder of the lease does the work, and keeps the lease."""

    def __init__(
        self,
        db: Database,
        retention: Retention,
        policy: HousekeepingPolicy = HousekeepingPolicy(),
    ) -> None:
        self._db = db
        self._retention = retention
        self._policy = policy
        self._holder = new_id()

    async def run(self) -> None:
        """Until cancelled; faults are logged and tried again."""
        while True:
            await asyncio.sleep(self._policy.interval_s * random.uniform(0.5, 1.5))  # noqa: S311
            try:
                await self._sweep_all()
            except TransientError as exc:
                log.warning("housekeeping_failed", error=str(exc))

    async def _sweep_all(self) -> None:
        while await self.sweep_once() >= self._policy.batch:  # noqa: ASYNC110
            await asyncio.sleep(self._policy.pause_s)

    async def sweep_once(self) -> int:
        """One batch of each kind; returns the largest. 0 where another process has the lease.

        Raises: TransientError.
        """
        async with self._db.work() as sql:
            if not await acquire(sql, LEASE, self._holder, ttl_s=2 * self._policy.interval_s):
                return 0
            return await prune(sql, self._retention, limit=self._policy.batch)
