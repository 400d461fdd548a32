"""Fan-out: wakes the streams that wait on a turn. SQL is the truth, Kafka only makes it quick."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from libs.contracts import TurnReply
from libs.kernel import TransientError
from libs.observability.metrics import OPEN_STREAMS, STREAM_GAPS
from libs.storage.sql import Database, turns
from libs.storage.sql.turns import TurnEvent

_MAX_BUFFERED = 256  # events a slow client may be behind in memory; the rest waits in SQL
_PAGE = 500  # events read from SQL at once
_MAX_POLL_S = 4.0
_TURNS_PER_QUERY = 500

_log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Waiter:
    """One open stream: where it stands and what was heard for it since."""

    tenant: str
    turn_id: str
    seq: int  # the last event its stream took
    poll_s: float
    poll_at: float
    behind: bool = True  # SQL may hold events that were not heard
    began: bool = False  # what was stored before the stream opened has been read
    heard: deque[TurnEvent] = field(default_factory=deque)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, event: TurnEvent) -> None:
        if len(self.heard) < _MAX_BUFFERED:
            self.heard.append(event)
        else:
            self.look()
        self.wake.set()

    def look(self) -> None:
        """Read SQL next: something was missed, or may have been."""
        self.heard.clear()
        self.behind = True
        self.wake.set()

    def take(self) -> list[TurnEvent]:
        """The heard events that follow on without a gap; a gap means looking into SQL."""
        events: list[TurnEvent] = []
        expected = self.seq + 1
        while self.heard:
            event = self.heard.popleft()
            if event.seq > expected:
                self.look()
            elif event.seq == expected:
                events.append(event)
                expected += 1
        return events


class Replies:
    """Follows turns for any number of open streams.

    `hear` is the handler of `TurnReply`. A stream that hears nothing for `poll_s` is checked
    against SQL, all such streams in one query, so that a lost broker loses no event.
    """

    def __init__(self, db: Database, *, poll_s: float = 1.0) -> None:
        self._db = db
        self._poll_s = poll_s
        self._waiters: defaultdict[str, list[Waiter]] = defaultdict(list)

    @property
    def open_streams(self) -> int:
        return sum(len(waiters) for waiters in self._waiters.values())

    async def hear(self, reply: TurnReply) -> None:
        """Hand an event to the streams of its turn. Safe to repeat: seqs taken are skipped."""
        waiters = self._waiters.get(reply.turn_id)
        if waiters is None:
            return
        event = TurnEvent(reply.turn_id, reply.seq, reply.type, json.loads(reply.data))
        for waiter in waiters:
            if waiter.tenant == reply.tenant:
                self._postpone(waiter)
                waiter.offer(event)

    async def follow(
        self, tenant: str, turn_id: str, after: int, *, heartbeat_s: float = 10.0
    ) -> AsyncGenerator[TurnEvent | None, None]:
        """The turn's events after seq `after`, in order, without gaps, up to the terminal one.

        Yields None when there was nothing to tell for `heartbeat_s`. The caller has checked that
        the turn is the tenant's; close the generator to stop following.
        """
        with self._waiting(tenant, turn_id, after) as waiter:
            while True:
                events = await self._next(waiter, heartbeat_s)
                if not events:
                    yield None
                for event in events:
                    waiter.seq = event.seq
                    yield event
                    if event.terminal:
                        return

    async def poll(self) -> None:
        """Check every quiet stream against SQL and wake those that missed something."""
        now = asyncio.get_running_loop().time()
        due = [w for w in self._all() if w.poll_at <= now and not w.behind]
        for start in range(0, len(due), _TURNS_PER_QUERY):
            some = due[start : start + _TURNS_PER_QUERY]
            async with self._db.reading() as sql:
                newest = await turns.last_seqs(sql, {w.turn_id for w in some})
            for waiter in some:
                if newest.get(waiter.turn_id, 0) > waiter.seq:
                    self._postpone(waiter)
                    waiter.look()
                else:
                    waiter.poll_s = min(waiter.poll_s * 2, max(_MAX_POLL_S, self._poll_s))
                    waiter.poll_at = now + waiter.poll_s

    async def run(self) -> None:
        """Poll for ever; SQL that is away now is asked again."""
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                await self.poll()
            except TransientError as exc:
                _log.warning("turn_poll_failed", error=str(exc))

    async def _next(self, waiter: Waiter, heartbeat_s: float) -> Sequence[TurnEvent]:
        """What follows on, or nothing after `heartbeat_s`."""
        while True:
            if events := waiter.take():
                return events
            if waiter.behind:
                if events := await self._read(waiter):
                    return events
                continue
            waiter.wake.clear()
            try:
                async with asyncio.timeout(heartbeat_s):
                    await waiter.wake.wait()
            except TimeoutError:
                return []

    async def _read(self, waiter: Waiter) -> list[TurnEvent]:
        waiter.behind = False
        try:
            async with self._db.reading() as sql:
                events = await turns.events_after(
                    sql, waiter.tenant, waiter.turn_id, waiter.seq, limit=_PAGE
                )
        except TransientError as exc:
            _log.warning("turn_read_failed", turn_id=waiter.turn_id, error=str(exc))
            events = []  # the next poll looks again
        if waiter.began:
            STREAM_GAPS.inc(len(events))
        waiter.began = len(events) < _PAGE
        waiter.behind = waiter.behind or not waiter.began
        return events

    def _postpone(self, waiter: Waiter) -> None:
        waiter.poll_s = self._poll_s
        waiter.poll_at = asyncio.get_running_loop().time() + self._poll_s

    def _all(self) -> Iterable[Waiter]:
        return (waiter for waiters in self._waiters.values() for waiter in waiters)

    @contextmanager
    def _waiting(self, tenant: str, turn_id: str, after: int) -> Iterator[Waiter]:
        waiter = Waiter(tenant, turn_id, after, self._poll_s, 0.0)
        self._postpone(waiter)
        self._waiters[turn_id].append(waiter)
        OPEN_STREAMS.labels("turn").inc()
        try:
            yield waiter
        finally:
            OPEN_STREAMS.labels("turn").dec()
            self._waiters[turn_id].remove(waiter)
            if not self._waiters[turn_id]:
                del self._waiters[turn_id]
