"""The reconciler: work that SQL knows to be unfinished, and that nobody works on, is emitted again.

In flight, hence left alone, is work of which some outbox row

- is not sent yet (a retry that waits for its time is this case), or
- went into the log the broker still has, to a place that is there and that the consumer group has
  not passed: the end of a topic that was deleted and made again is before it;

and work under a live lease. Everything else was lost on its way. Any row counts, not the newest
alone, as which one that is depends on clocks: a lost event waits until its key's others passed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import structlog
from sqlalchemy import RowMapping

from libs.contracts import Event, retry_topic, topic_of
from libs.eventbus.backlog import Backlog, Backlogs
from libs.eventbus.message import Place
from libs.eventbus.waiting import until_any
from libs.kernel import TransientError, new_id
from libs.observability.metrics import RECONCILED
from libs.storage.sql import Database, UnitOfWork
from libs.storage.sql.leases import acquire, live, release
from libs.storage.sql.outbox import rows_by_key

log = structlog.get_logger(__name__)

PAGE = 200
TURN_TTL_S = 5.0  # how long a pass may hold its turn; the unit of work is far shorter


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Work whose state is not final, and the event that makes it go on."""

    event: Event
    group_id: str  # the consumer group that handles the event
    lane: str = ""
    lease: str | None = None  # what a worker holds while it is at it

    @property
    def key(self) -> str:
        return str(getattr(self.event, topic_of(type(self.event).__name__).key))

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic on which this work can be on its way to its group."""
        topic = topic_of(type(self.event).__name__)
        lanes = [topic.lane(lane) for lane in ("", *topic.lanes)]
        return (*lanes, retry_topic(topic.name, self.group_id))


class WorkSource(Protocol):
    """Finds one kind of unfinished work in SQL."""

    kind: str  # for the metric: document, turn, deletion

    async def unfinished(
        self, sql: UnitOfWork, after: str, limit: int
    ) -> Sequence[tuple[str, Unfinished]]:
        """Up to `limit` (id, work) pairs by ascending id, ids greater than `after` ('': from the
        start). Only states at rest in SQL: what a worker is to do next.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """What the broker said before the unit of work; it can only have moved on since."""

    epoch: str
    backlogs: Mapping[str, Mapping[Place, Backlog]]  # by group

    def is_lost(
        self, work: Unfinished, rows: Sequence[RowMapping], leased: Collection[str]
    ) -> bool:
        return work.lease not in leased and not any(self._is_on_its_way(work, row) for row in rows)

    def _is_on_its_way(self, work: Unfinished, row: RowMapping) -> bool:
        if row["sent_at"] is None:
            return True
        if row["broker_epoch"] != self.epoch:
            return False
        backlog = self.backlogs.get(work.group_id, {}).get((row["topic"], row["partition"]))
        return backlog is None or backlog.next_offset <= row["offset"] < backlog.end


class Reconciler:
    """Runs at the start, regularly, and when the broker's log is a new one.

    Several may run: passes over one source take turns, and the second finds the first one's rows.
    """

    def __init__(
        self,
        db: Database,
        backlogs: Backlogs,
        epoch: Callable[[], str],
        sources: Sequence[WorkSource],
        *,
        interval_s: float = 30.0,
    ) -> None:
        self._db = db
        self._backlogs = backlogs
        self._epoch = epoch
        self._sources = sources
        self._interval_s = interval_s
        self._holder = new_id()
        self._wanted = asyncio.Event()

    def wake(self) -> None:
        """Look now, not at the next interval."""
        self._wanted.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; faults are logged and tried again at the next interval."""
        while not stop.is_set():
            self._wanted.clear()
            for source in self._sources:
                try:
                    await self.reconcile(source)
                except TransientError as exc:
                    log.warning("reconciling_failed", kind=source.kind, error=str(exc))
            await self._pause(stop)

    async def _pause(self, stop: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._interval_s):
                await until_any(self._wanted.wait(), stop.wait())

    async def reconcile(self, source: WorkSource) -> int:
        """One pass over one source; returns how many events were emitted again.

        Raises: TransientError when SQL or the broker is away.
        """
        after, total = "", 0
        while True:
            async with self._db.reading() as sql:
                found = list(await source.unfinished(sql, after, PAGE))
                rows = await _rows_of(sql, [work for _, work in found])
            known = await self._ask_broker([work for _, work in found], rows)
            if not found or known is None:
                return total
            total += await self._emit_lost(source, after, known)
            if len(found) < PAGE:
                return total
            after = found[-1][0]

    async def _ask_broker(
        self, works: Sequence[Unfinished], rows: Mapping[tuple[str, ...], Sequence[RowMapping]]
    ) -> _Known | None:
        epoch = self._epoch()
        if not epoch:
            return None
        wanted: dict[str, set[Place]] = defaultdict(set)
        for work in works:
            for row in rows.get((*work.topics, work.key), ()):
                if row["sent_at"] is not None and row["broker_epoch"] == epoch:
                    wanted[work.group_id].add((row["topic"], row["partition"]))
        return _Known(epoch, await self._backlogs.of_groups(wanted) if wanted else {})

    async def _emit_lost(self, source: WorkSource, after: str, known: _Known) -> int:
        async with self._db.work() as sql:
            turn = f"reconcile:{source.kind}"
            if not await acquire(sql, turn, self._holder, ttl_s=TURN_TTL_S):
                return 0  # its unit of work has not ended, and it sees what we see
            works = [work for _, work in await source.unfinished(sql, after, PAGE)]
            rows = await _rows_of(sql, works)
            leased = await live(sql, {work.lease for work in works if work.lease})
            lost = [
                work
                for work in works
                if known.is_lost(work, rows.get((*work.topics, work.key), ()), leased)
            ]
            for work in lost:
                await sql.emit(work.event, lane=work.lane)
            await release(sql, turn, self._holder)
        if lost:
            log.warning("unfinished_work_emitted_again", kind=source.kind, count=len(lost))
            RECONCILED.labels(source.kind).inc(len(lost))
        return len(lost)


async def _rows_of(
    sql: UnitOfWork, works: Sequence[Unfinished]
) -> dict[tuple[str, ...], Sequence[RowMapping]]:
    """By (topics…, key): the outbox rows of each work."""
    keys: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for work in works:
        keys[work.topics].add(work.key)
    return {
        (*topics, key): rows
        for topics, wanted in keys.items()
        for key, rows in (await rows_by_key(sql, topics, wanted)).items()
    }
