"""The relay: outbox rows go to the broker right after their transaction has committed."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from libs.contracts import Position
from libs.eventbus.publisher import Publisher
from libs.kernel import SluiceError, now_us
from libs.observability.metrics import OUTBOX_RELAY_FAILURES, OUTBOX_RELAYED
from libs.storage.sql import Database, OutboxRow
from libs.storage.sql.outbox import SentRow, mark_sent, postpone

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RelayPolicy:
    """How rows are grouped on their way to the broker."""

    max_batch: int = 500  # rows sent in one go
    max_waiting: int = 10_000  # rows in memory; what is beyond is left to the sweep
    mark_every_s: float = 0.05  # positions are written back together this often
    retry_after_s: float = 0.5  # a row that was not sent is due again after half its age, but
    max_retry_after_s: float = 5.0  # at least this and at most that much later


class Relay:
    """Sends committed rows in the order of their commits and keeps where they went.

    A row is marked a moment after it was sent: a crash between the two sends it again, which
    consumers allow for. A row that could not be sent is left to the sweep, so later rows of its key
    may overtake it.

    Args:
        epoch: The id of the log that the process is connected to, read before each batch.
    """

    def __init__(
        self,
        db: Database,
        publisher: Publisher,
        epoch: Callable[[], str],
        policy: RelayPolicy = RelayPolicy(),
    ) -> None:
        self._db = db
        self._publisher = publisher
        self._epoch = epoch
        self._policy = policy
        self._waiting: asyncio.Queue[OutboxRow] = asyncio.Queue(policy.max_waiting)
        self._sent: list[SentRow] = []
        self._to_mark = asyncio.Event()
        self._marking = asyncio.Lock()
        self._idle = asyncio.Event()
        self._idle.set()
        self.delayed = asyncio.Event()  # set when a row was committed that is due later

    async def after_commit(self, rows: Sequence[OutboxRow]) -> None:
        """`Database.after_commit`: takes the rows and returns at once; never raises."""
        now = now_us()
        for row in rows:
            if row.not_before > now:
                self.delayed.set()
                continue
            try:
                self._waiting.put_nowait(row)
            except asyncio.QueueFull:
                return
            self._idle.clear()

    async def run(self) -> None:
        """Send and mark until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_forever())
            tasks.create_task(self._mark_forever())

    async def drain(self, timeout_s: float) -> None:
        """Wait until everything that was handed over has been tried and marked."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            log.warning("relay_not_drained", waiting=self._waiting.qsize())
        await self._mark()

    async def _send_forever(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            while not self._waiting.empty() and len(batch) < self._policy.max_batch:
                batch.append(self._waiting.get_nowait())
            now = now_us()
            await self.send([row for row in batch if row.claimed_until > now])
            if self._waiting.empty():
                self._idle.set()

    async def send(self, rows: Sequence[OutboxRow], *, via: str = "commit") -> int:
        """Send claimed rows; returns how many went out. The others are due again soon.

        Args:
            via: Who sends, for the metric: commit or sweep.
        """
        if not rows:
            return 0
        epoch = self._epoch()
        outcomes = await self._publisher.send_many([row.record for row in rows])
        failed = []
        for row, outcome in zip(rows, outcomes, strict=True):
            if isinstance(outcome, Position):
                self._sent.append(SentRow(row.id, outcome, epoch))
            else:
                log.warning("outbox_row_not_sent", topic=row.record.topic, error=str(outcome))
                failed.append(row)
        self._to_mark.set()
        OUTBOX_RELAYED.labels(via).inc(len(rows) - len(failed))
        if failed:
            OUTBOX_RELAY_FAILURES.inc(len(failed))
            await self._leave(failed)
        return len(rows) - len(failed)

    async def _leave(self, rows: Sequence[OutboxRow]) -> None:
        now = now_us()
        oldest_age_s = (now - min(row.created_at for row in rows)) / 1e6
        pause_s = min(
            max(oldest_age_s / 2, self._policy.retry_after_s), self._policy.max_retry_after_s
        )
        try:
            async with self._db.work() as sql:
                await postpone(sql, [row.id for row in rows], until=now + int(pause_s * 1e6))
        except SluiceError as exc:
            log.warning("outbox_rows_stay_claimed", rows=len(rows), error=str(exc))
        self.delayed.set()

    async def _mark_forever(self) -> None:
        pause_s = self._policy.mark_every_s
        while True:
            await self._to_mark.wait()
            await asyncio.sleep(pause_s)
            if await self._mark():
                pause_s = self._policy.mark_every_s
            else:  # SQL may be away, or its disk full, for long
                pause_s = min(pause_s * 2, self._policy.max_retry_after_s)

    async def _mark(self) -> bool:
        """False: what was sent has to be marked later."""
        async with self._marking:  # whoever drains waits for what is being marked
            return await self._mark_sent()

    async def _mark_sent(self) -> bool:
        self._to_mark.clear()
        sent, self._sent = self._sent, []
        if not sent:
            return True
        try:
            async with self._db.work() as sql:
                await mark_sent(sql, sent)
        except SluiceError as exc:
            log.warning("outbox_rows_not_marked", rows=len(sent), error=str(exc))
            self._sent = sent + self._sent
            self._to_mark.set()
            return False
        return True
