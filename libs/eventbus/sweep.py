"""The sweep: sends outbox rows whose time has come and those that no relay got out."""

import random
from dataclasses import dataclass

import structlog

from libs.eventbus.relay import Relay
from libs.kernel import TransientError, now_us, set_within
from libs.observability.metrics import OUTBOX_OLDEST_SECONDS, OUTBOX_PENDING
from libs.storage.sql import Database
from libs.storage.sql.outbox import backlog, claim_due, next_due

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SweepPolicy:
    """How often the outbox is looked through."""

    interval_s: float = 1.0  # jittered, so that processes take turns
    claim_s: float = 10.0
    batch: int = 200


class Sweep:
    """Each pass claims due rows, so that of several processes only one sends a row."""

    def __init__(
        self,
        db: Database,
        relay: Relay,
        policy: SweepPolicy = SweepPolicy(),
    ) -> None:
        self._db = db
        self._relay = relay
        self._policy = policy

    async def run(self) -> None:
        """Look through the outbox until cancelled; faults are logged and tried again."""
        while True:
            await self._nap()
            await self._try_pass()

    async def sweep_once(self) -> int:
        """Send every row that is due now; returns how many went out.

        A batch of which nothing went out ends the pass: the broker is away. Raises: TransientError
        from SQL.
        """
        total = 0
        claim_us = int(self._policy.claim_s * 1e6)
        while await self._due_in_s() == 0:
            async with self._db.work() as sql:
                rows = await claim_due(sql, claim_us=claim_us, limit=self._policy.batch)
            sent = await self._relay.send(rows, via="sweep")
            total += sent
            if not sent:
                break
        return total

    async def _due_in_s(self) -> float | None:
        async with self._db.reading() as sql:
            due = await next_due(sql)
        return None if due is None else max((due - now_us()) / 1e6, 0.0)

    async def _nap(self) -> None:
        self._relay.delayed.clear()
        nap_s = self._policy.interval_s * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load
        try:
            due_in_s = await self._due_in_s()
        except TransientError:
            due_in_s = None
        if due_in_s is not None:
            nap_s = min(nap_s, max(due_in_s, 0.05))
        await set_within(self._relay.delayed, nap_s)

    async def _try_pass(self) -> None:
        try:
            swept = await self.sweep_once()
            await self._measure()
        except TransientError as exc:
            log.warning("outbox_sweep_failed", error=str(exc))
            return
        if swept:
            log.info("outbox_swept", rows=swept)

    async def _measure(self) -> None:
        async with self._db.reading() as sql:
            waiting = await backlog(sql)
        OUTBOX_PENDING.set(waiting.rows)
        since = waiting.oldest_due_at
        OUTBOX_OLDEST_SECONDS.set(0.0 if since is None else (now_us() - since) / 1e6)
