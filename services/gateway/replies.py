"""Fan-out: wakes the streams that wait on a turn. SQL is the truth, Kafka only makes it quick."""

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from libs.contracts import TurnReply
from libs.kernel import TransientError, end_tasks
from libs.observability.metrics import OPEN_STREAMS, STREAM_GAPS
from libs.storage.sql import Database, turns
from libs.storage.sql.turns import TurnEvent

_MAX_BUFFERED = 256  # events a slow client may be behind in memory; the rest waits in SQL
_PAGE = 500  # events read from SQL at once
_MAX_QUIET = 4  # times its interval: how seldom a stream that hears nothing is checked
_TURNS_PER_QUERY = 500

_log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Waiter:
    """One open stream: where it stands and what was heard for it since."""

    tenant: str
    turn_id: str
    seq: int  # the last event its stream took
    deaf: bool  # its events come from SQL, nothing is heard of them
    poll_s: float = 0.0
    poll_at: float = 0.0
    behind: bool = True  # SQL may hold events that were not heard
    began: bool = False  # what was stored before the stream opened has been read
    heard: deque[TurnEvent] = field(default_factory=deque)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    reading: asyncio.Task[None] | None = None

    def offer(self, event: TurnEvent) -> None:
        if len(self.heard) < _MAX_BUFFERED:
            self.heard.append(event)
        else:
            self.look()
        self.wake.set()

    def found(self, events: Sequence[TurnEvent]) -> None:
        """What SQL holds after `seq`; it comes before what was heard."""
        self.heard.extendleft(reversed(events))
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
    against SQL, all such streams in one query, so that a lost broker loses no event. One whose
    events only SQL brings (they are announced to another replica, or the broker is away) is
    checked four times as often.
    """

    def __init__(
        self, db: Database, *, poll_s: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._poll_s = poll_s
        self._quick_poll_s = poll_s / 4
        self._clock = clock
        self._waiters: defaultdict[str, list[Waiter]] = defaultdict(list)

    @property
    def open_streams(self) -> int:
        return sum(len(waiters) for waiters in self._waiters.values())

    @property
    def held_events(self) -> int:
        """Events kept in memory for streams whose clients have not taken them yet."""
        return sum(len(waiter.heard) for waiter in self._all())

    async def hear(self, reply: TurnReply) -> None:
        """Hand an event to the streams of its turn. Safe to repeat: seqs taken are skipped."""
        waiters = self._waiters.get(reply.turn_id)
        if waiters is None:
            return
        event = TurnEvent(reply.turn_id, reply.seq, reply.type, json.loads(reply.data))
        for waiter in waiters:
            if waiter.tenant == reply.tenant:
                waiter.deaf = False
                self._postpone(waiter)
                waiter.offer(event)

    async def follow(
        self,
        tenant: str,
        turn_id: str,
        after: int,
        *,
        heartbeat_s: float = 10.0,
        deaf: bool = False,
    ) -> AsyncGenerator[TurnEvent | None, None]:
        """The turn's events after seq `after`, in order, without gaps, up to the terminal one.

        Yields None when there was nothing to tell for `heartbeat_s`, also while SQL hangs. The
        caller has checked that the turn is the tenant's; close the generator to stop following.

        Args:
            deaf: The turn's events are announced to another replica.
        """
        waiter = Waiter(tenant, turn_id, after, deaf)
        self._postpone(waiter)
        try:
            with self._waiting(waiter):
                while True:
                    events = await self._next(waiter, heartbeat_s)
                    if not events:
                        yield None
                    for event in events:
                        waiter.seq = event.seq
                        yield event
                        if event.terminal:
                            return
        finally:
            if waiter.reading is not None:
                await end_tasks(waiter.reading)

    async def poll(self) -> None:
        """Check every quiet stream against SQL and wake those that missed something."""
        now = self._clock()
        due = [w for w in self._all() if w.poll_at <= now and not w.behind and w.reading is None]
        for start in range(0, len(due), _TURNS_PER_QUERY):
            some = due[start : start + _TURNS_PER_QUERY]
            async with self._db.reading() as sql:
                newest = await turns.last_seqs(sql, {w.turn_id for w in some})
            for waiter in some:
                if newest.get(waiter.turn_id, 0) > waiter.seq:
                    waiter.deaf = True
                    self._postpone(waiter)
                    waiter.look()
                else:
                    waiter.poll_s = min(waiter.poll_s * 2, self._interval_s(waiter) * _MAX_QUIET)
                    waiter.poll_at = now + waiter.poll_s

    async def run(self) -> None:
        """Poll for ever; SQL that is away now is asked again."""
        while True:
            await asyncio.sleep(self._quick_poll_s)
            try:
                await self.poll()
            except TransientError as exc:
                _log.warning("turn_poll_failed", error=str(exc))

    async def _next(self, waiter: Waiter, heartbeat_s: float) -> Sequence[TurnEvent]:
        """What follows on, or nothing after `heartbeat_s`."""
        try:
            async with asyncio.timeout(heartbeat_s):
                while True:
                    # It may have ended while the client took what was heard meanwhile.
                    if waiter.reading is not None and waiter.reading.done():
                        waiter.reading.result()
                        waiter.reading = None
                    if events := waiter.take():
                        return events
                    if waiter.behind and waiter.reading is None:
                        waiter.reading = asyncio.create_task(self._read(waiter))
                    waiter.wake.clear()
                    await waiter.wake.wait()
        except TimeoutError:
            return []

    async def _read(self, waiter: Waiter) -> None:
        """Beside the stream, whose heartbeats must not wait for SQL."""
        waiter.behind = False
        try:
            async with self._db.reading() as sql:
                events = await turns.events_after(
                    sql, waiter.tenant, waiter.turn_id, waiter.seq, limit=_PAGE
                )
            if waiter.began:
                STREAM_GAPS.inc(len(events))
            waiter.began = len(events) < _PAGE
            waiter.behind = waiter.behind or not waiter.began
            waiter.found(events)
        except TransientError as exc:  # the next poll looks again
            _log.warning("turn_read_failed", turn_id=waiter.turn_id, error=str(exc))
        finally:
            waiter.wake.set()

    def _postpone(self, waiter: Waiter) -> None:
        waiter.poll_s = self._interval_s(waiter)
        waiter.poll_at = self._clock() + waiter.poll_s

    def _interval_s(self, waiter: Waiter) -> float:
        return self._quick_poll_s if waiter.deaf else self._poll_s

    def _all(self) -> Iterable[Waiter]:
        return (waiter for waiters in self._waiters.values() for waiter in waiters)

    @contextmanager
    def _waiting(self, waiter: Waiter) -> Iterator[None]:
        self._waiters[waiter.turn_id].append(waiter)
        OPEN_STREAMS.labels("turn").inc()
        try:
            yield
        finally:
            OPEN_STREAMS.labels("turn").dec()
            self._waiters[waiter.turn_id].remove(waiter)
            if not self._waiters[waiter.turn_id]:
                del self._waiters[waiter.turn_id]
