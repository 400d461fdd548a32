"""The journal of a running turn: its events go to SQL first and are fanned out afterwards."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, Self

import structlog

from libs.contracts import OutgoingRecord, to_record
from libs.eventbus.publisher import Publisher
from libs.kernel import ConflictError, TransientError, end_tasks
from libs.storage.sql import Database, UnitOfWork
from libs.storage.sql.turn_events import TurnEvent, append_events, last_seq, reply_of
from libs.storage.sql.turns import Outcome, finish

log = structlog.get_logger(__name__)


class FanOut(Protocol):
    """Takes records that may be lost, as gateways fill gaps from SQL; never blocks or raises."""

    def offer(self, records: Sequence[OutgoingRecord]) -> None: ...


class ReplyFanOut:
    """`FanOut` over a publisher: one task sends in order, so a slow broker delays no answer."""

    def __init__(self, publisher: Publisher, *, max_waiting: int = 2_000) -> None:
        self._publisher = publisher
        self._waiting: asyncio.Queue[OutgoingRecord] = asyncio.Queue(max_waiting)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what waits, for a moment; SQL has it all."""
        try:
            async with asyncio.timeout(1.0):
                await self._waiting.join()
        except TimeoutError:
            log.info("replies_not_fanned_out", waiting=self._waiting.qsize())
        if self._task is not None:
            await end_tasks(self._task)

    def offer(self, records: Sequence[OutgoingRecord]) -> None:
        for record in records:
            if self._waiting.full():
                return
            self._waiting.put_nowait(record)

    async def _run(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            while not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            outcomes = await self._publisher.send_many(batch)
            lost = [o for o in outcomes if isinstance(o, TransientError)]
            if lost:
                log.warning("replies_not_fanned_out", count=len(lost), error=str(lost[0]))
            for _ in batch:
                self._waiting.task_done()


class AboutTurn(Protocol):
    """An event about a turn that says where its replies are listened for."""

    @property
    def tenant(self) -> str: ...
    @property
    def turn_id(self) -> str: ...
    @property
    def reply_partition(self) -> int: ...


class Step:
    """One unit of work of a turn: its events and its state change together."""

    def __init__(self, sql: UnitOfWork, tenant: str, turn_id: str, seq: int) -> None:
        self.sql = sql
        self.events: list[TurnEvent] = []
        self._tenant = tenant
        self._turn_id = turn_id
        self._seq = seq

    async def append(self, *events: tuple[str, Mapping[str, Any]]) -> None:
        """Raises: ConflictError when another writer has taken the turn over, or it has ended."""
        added = await append_events(self.sql, self._tenant, self._turn_id, events, after=self.seq)
        self.events += added

    async def finish(self, outcome: Outcome) -> bool:
        """The terminal event, once. False: the turn had ended. Raises: ConflictError as above."""
        if await last_seq(self.sql, self._turn_id) != self.seq:
            raise ConflictError(f"turn {self._turn_id} has another writer")
        event = await finish(self.sql, self._tenant, self._turn_id, outcome)
        self.events += [event] if event else []
        return event is not None

    @property
    def seq(self) -> int:
        return self.events[-1].seq if self.events else self._seq


class TurnJournal:
    """Writes the events of one turn. Whoever was overtaken fails on the next write.

    Args:
        after: The seq of the last stored event, as seen under the turn's lease.
        partition: Of `chat.replies.v1`, where the asking gateway listens.
    """

    def __init__(
        self,
        db: Database,
        fan_out: FanOut,
        *,
        tenant: str,
        turn_id: str,
        partition: int,
        after: int,
    ) -> None:
        self._db = db
        self._fan_out = fan_out
        self._tenant = tenant
        self._turn_id = turn_id
        self._partition = partition
        self.seq = after

    @classmethod
    def of(cls, event: AboutTurn, db: Database, fan_out: FanOut, *, after: int) -> Self:
        """The journal of the turn that an event is about."""
        return cls(
            db,
            fan_out,
            tenant=event.tenant,
            turn_id=event.turn_id,
            partition=event.reply_partition,
            after=after,
        )

    @asynccontextmanager
    async def step(self) -> AsyncIterator[Step]:
        """A unit of work whose events are fanned out once it has committed."""
        async with self._db.work() as sql:
            step = Step(sql, self._tenant, self._turn_id, self.seq)
            yield step
        self.seq = step.seq
        self._fan_out.offer(
            [to_record(reply_of(self._tenant, e), partition=self._partition) for e in step.events]
        )

    async def append(self, *events: tuple[str, Mapping[str, Any]]) -> None:
        """One step that only appends events. Raises: ConflictError."""
        async with self.step() as step:
            await step.append(*events)
