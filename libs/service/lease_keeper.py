"""Holding a lease while work runs: taken when free, renewed in the background, given back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from libs.kernel import SluiceError, end_tasks, new_id
from libs.storage.sql import Database
from libs.storage.sql.leases import acquire, release, renew

log = structlog.get_logger(__name__)

TTL_S = 6.0
_POLL_S = 0.2


class LeaseKeeper:
    """Leases of one process. A lost lease is not an error here: the writer notices on its key.

    Args:
        ttl_s: After this long without a sign of life somebody else may take over.
    """

    def __init__(self, db: Database, *, ttl_s: float = TTL_S) -> None:
        self._db = db
        self._ttl_s = ttl_s
        self._held: dict[str, str] = {}  # names by holder
        self._renewing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[bool]:
        """Hold the lease for the block. False: its holder is alive, as it was renewed meanwhile.

        Waits for at most one time to live, which is when a dead holder's lease has run out.
        """
        holder = new_id()
        if not await self._acquire(name, holder):
            yield False
            return
        self._held[holder] = name
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
        try:
            yield True
        finally:
            self._held.pop(holder, None)
            if not self._held and self._renewing is not None:
                idle, self._renewing = self._renewing, None
                await end_tasks(idle)
            await asyncio.shield(self._release(name, holder))

    async def _acquire(self, name: str, holder: str) -> bool:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._ttl_s + 2 * _POLL_S
        while True:
            async with self._db.work() as sql:
                if await acquire(sql, name, holder, ttl_s=self._ttl_s):
                    return True
            if clock() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)

    async def _renew(self) -> None:
        """All leases in one unit of work, as databases carry few of them a second."""
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            try:
                async with self._db.work() as sql:
                    lost = await renew(sql, {**self._held}, ttl_s=self._ttl_s)
            except SluiceError as exc:
                log.warning("leases_not_renewed", count=len(self._held), error=str(exc))
                continue
            for holder in lost:
                if name := self._held.pop(holder, None):
                    log.warning("lease_lost", name=name)

    async def _release(self, name: str, holder: str) -> None:
        async with self._db.work() as sql:
            await release(sql, name, holder)
