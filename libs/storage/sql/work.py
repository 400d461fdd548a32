"""Units of work: the only way SQL is written, and the only way events leave a transaction."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from sqlalchemy import Executable, Result, RowMapping, UpdateBase, insert
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.contracts import Event, OutgoingRecord, to_record
from libs.kernel import ConflictError, PermanentError, TransientError, new_id, now_us
from libs.storage.sql.engines import (
    READ_ONLY,
    WRITE_WAIT_S,
    answered,
    entered_and_left,
    open_engine,
    silence_s,
    snapshots_of,
)
from libs.storage.sql.failures import LostRaceError, sql_errors
from libs.storage.sql.schema import check_revision
from libs.storage.sql.snapshots import Snapshot, Snapshots
from libs.storage.sql.tables import outbox

T = TypeVar("T")

# How long the committing process alone may send a new outbox row; then the sweep takes it.
FIRST_CLAIM_US = 10_000_000
# Big payloads are never events: they go to the object store, the event carries the key.
MAX_EVENT_BYTES = 900_000


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A committed, unsent outbox row that is this process's to send until `claimed_until`."""

    id: str
    record: OutgoingRecord
    created_at: int
    claimed_until: int
    not_before: int = 0  # earliest time of sending; 0: at once


AfterCommit = Callable[[Sequence[OutboxRow]], Awaitable[None]]


class UnitOfWork:
    """One short transaction. No network call inside; every state change a compare-and-set.

    Raises (every method): TransientError while the database is busy, full or away, and from then
    on, as the server may have undone the unit; ConflictError when a row breaks a uniqueness rule:
    the unit may go on.

    On a server other units write meanwhile: a row by which this one decides is read with
    `with_for_update()`, or is in the WHERE of a compare-and-set.
    """

    def __init__(
        self, connection: AsyncConnection | Snapshot, *, silence_s: float | None, read_only: bool
    ) -> None:
        self._connection = connection
        self._read_only = read_only
        self._silence_s = silence_s
        self._undone: TransientError | None = None
        self.outbox_rows: list[OutboxRow] = []
        self.when_committed: list[Callable[[], None]] = []  # counts what has really happened

    async def execute(self, statement: Executable, *args: Any) -> Result[Any]:
        if self._read_only and isinstance(statement, UpdateBase):
            raise RuntimeError("a read-only unit of work cannot write: use Database.work()")
        self.check()
        try:
            with sql_errors():
                async with answered(self._silence_s):
                    return await self._connection.execute(statement, *args)
        except TransientError as exc:
            self._undone = exc
            raise

    def check(self) -> None:
        """Raises: TransientError: a statement failed so that nothing of the unit may stay."""
        if self._undone is not None:
            raise self._undone

    async def rows(self, statement: Executable) -> list[RowMapping]:
        return list((await self.execute(statement)).mappings().all())

    async def first(self, statement: Executable) -> RowMapping | None:
        return (await self.execute(statement)).mappings().first()

    async def scalar(self, statement: Executable) -> Any:
        return (await self.execute(statement)).scalar()

    async def compare_and_set(self, statement: Executable) -> bool:
        """Run an UPDATE whose WHERE holds the expected state; False: somebody was faster."""
        return await self.affected(statement) == 1

    async def affected(self, statement: Executable) -> int:
        """Run a statement that writes; returns how many rows it did so to."""
        return cast(CursorResult[Any], await self.execute(statement)).rowcount

    async def emit(self, event_: Event, *, lane: str = "", not_before: int = 0) -> None:
        """Announce an event when, and only when, this transaction commits.

        Args:
            not_before: Earliest time of sending, microseconds since the epoch; 0: at once.
        """
        await self.emit_record(to_record(event_, lane=lane), not_before=not_before)

    async def emit_record(self, record: OutgoingRecord, *, not_before: int = 0) -> None:
        """`emit` for a record that is framed already. Raises: PermanentError when too large."""
        if len(record.value) > MAX_EVENT_BYTES:
            detail = f"{len(record.value)} bytes for {record.topic}, {MAX_EVENT_BYTES} are allowed"
            raise PermanentError("event-too-large", detail)
        now = now_us()
        row = OutboxRow(new_id(), record, now, now + FIRST_CLAIM_US, not_before)
        await self.execute(
            insert(outbox).values(
                id=row.id,
                topic=record.topic,
                partition=record.partition,
                key=record.key,
                value=record.value,
                headers=record.headers,
                not_before=not_before if not_before > now else row.claimed_until,
                created_at=now,
            )
        )
        self.outbox_rows.append(row)


class Database:
    """Opens units of work on one engine.

    `after_commit`, once somebody has set it, gets the outbox rows of a committed unit and relays
    them; it must not raise (what it could not send, the sweep sends).
    """

    def __init__(self, engine: AsyncEngine, snapshots: Snapshots | None = None) -> None:
        self.engine = engine
        self._snapshots = snapshots
        self.after_commit: AfterCommit | None = None
        # SQLite has one writer at a time: the process's writers queue here, in order, and only
        # one of them waits for other processes.
        self._writer = asyncio.Lock() if engine.dialect.name == "sqlite" else None
        self._writing: set[asyncio.Task[Any] | None] = set()

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        """A writing transaction: commits at the end of the block, rolls back on any error."""
        async with AsyncExitStack() as stack:
            await self._wait_for_turn(stack)
            connection = await self._transaction(stack)
            unit = UnitOfWork(connection, silence_s=silence_s(self.engine), read_only=False)
            yield unit
            unit.check()
        for tell in unit.when_committed:
            tell()
        if unit.outbox_rows and self.after_commit is not None:
            await self.after_commit(unit.outbox_rows)

    async def repeated(self, unit: Callable[[UnitOfWork], Awaitable[T]], *, tries: int = 5) -> T:
        """Run `unit` as a unit of work, anew when another writer was faster.

        Only what is known to be undone is repeated here. Whether a unit was committed whose
        connection broke at its end, nobody knows: that is a TransientError, and its caller's
        repetition finds what there is, by compare-and-set or idempotency key.

        Raises: ConflictError, LostRaceError when it lost every try, so it will go on losing.
        """
        for _ in range(tries - 1):
            with suppress(ConflictError, LostRaceError):
                async with self.work() as sql:
                    return await unit(sql)
        async with self.work() as sql:
            return await unit(sql)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        """A read-only snapshot; never waits for writers."""
        async with AsyncExitStack() as stack:
            if self._snapshots is not None:
                stack.enter_context(sql_errors())
                snapshot = await stack.enter_async_context(self._snapshots.open())
                yield UnitOfWork(snapshot, silence_s=None, read_only=True)
                return
            connection = await self._transaction(stack, read_only=True)
            yield UnitOfWork(connection, silence_s=silence_s(self.engine), read_only=True)

    async def create_schema(self) -> tuple[str | None, str | None]:
        """Make the tables, or bring them to the newest schema; returns its number before and after.

        Raises: SchemaError when a newer Sluice has made it; TransientError.
        """
        from libs.storage.sql.migrating import migrate  # not loaded by services

        with sql_errors():
            async with self.engine.connect() as connection:
                return await connection.run_sync(migrate)

    async def check_schema(self) -> None:
        """Raises: SchemaError when the tables are not those that this code knows."""
        with sql_errors():
            async with self.engine.connect() as connection:
                await connection.run_sync(check_revision)

    async def close(self) -> None:
        await self.engine.dispose()
        if self._snapshots is not None:
            self._snapshots.dispose()

    async def _wait_for_turn(self, stack: AsyncExitStack) -> None:
        task = asyncio.current_task()
        if task in self._writing:
            raise RuntimeError("a unit of work inside another one would wait for itself")
        if self._writer is not None:
            try:
                async with asyncio.timeout(WRITE_WAIT_S):
                    await self._writer.acquire()
            except TimeoutError as exc:
                raise TransientError("SQL writers are queueing up") from exc
            stack.callback(self._writer.release)
        self._writing.add(task)
        stack.callback(self._writing.discard, task)

    async def _transaction(
        self, stack: AsyncExitStack, *, read_only: bool = False
    ) -> AsyncConnection:
        stack.enter_context(sql_errors())
        limit_s = silence_s(self.engine)
        connection = await stack.enter_async_context(
            entered_and_left(self.engine.connect(), limit_s)
        )
        if read_only:
            await connection.execution_options(**{READ_ONLY: True})
        await stack.enter_async_context(entered_and_left(connection.begin(), limit_s))
        return connection


def open_database(url: str, *, busy_timeout_s: float = WRITE_WAIT_S) -> Database:
    """A database on `url`, connected when it is first used.

    Args:
        busy_timeout_s: How long a SQLite writer waits for other processes' writers.

    Raises: ValueError: no such kind of database is supported.
    """
    return Database(
        open_engine(url, busy_timeout_s=busy_timeout_s),
        snapshots=snapshots_of(url, busy_timeout_s=busy_timeout_s),
    )
