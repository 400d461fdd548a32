"""Units of work: the only way SQL is written, and the only way events leave a transaction."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Executable, RowMapping, event, insert
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from libs.contracts import Event, OutgoingRecord, to_record
from libs.kernel import new_id, now_us
from libs.storage.sql.tables import metadata, outbox


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A committed, not yet relayed outbox row."""

    id: str
    record: OutgoingRecord
    not_before: int


AfterCommit = Callable[[Sequence[OutboxRow]], Awaitable[None]]


class UnitOfWork:
    """One short transaction. No network call inside; every state change a compare-and-set."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self.outbox_rows: list[OutboxRow] = []

    async def execute(self, statement: Executable, *args: Any) -> CursorResult[Any]:
        return await self._connection.execute(statement, *args)

    async def rows(self, statement: Executable) -> list[RowMapping]:
        return list((await self._connection.execute(statement)).mappings().all())

    async def first(self, statement: Executable) -> RowMapping | None:
        return (await self._connection.execute(statement)).mappings().first()

    async def scalar(self, statement: Executable) -> Any:
        return (await self._connection.execute(statement)).scalar()

    async def compare_and_set(self, statement: Executable) -> bool:
        """Run an UPDATE whose WHERE holds the expected state; False: somebody was faster."""
        return (await self.execute(statement)).rowcount == 1

    async def emit(self, event_: Event, *, lane: str = "", not_before: int = 0) -> None:
        """Announce an event when, and only when, this transaction commits."""
        await self.emit_record(to_record(event_, lane=lane), not_before=not_before)

    async def emit_record(self, record: OutgoingRecord, *, not_before: int = 0) -> None:
        row = OutboxRow(new_id(), record, not_before)
        await self.execute(
            insert(outbox).values(
                id=row.id,
                topic=record.topic,
                partition=record.partition,
                key=record.key,
                value=record.value,
                headers=record.headers,
                not_before=not_before,
                created_at=now_us(),
            )
        )
        self.outbox_rows.append(row)


class Database:
    """Opens units of work on one engine.

    `after_commit` gets the outbox rows of a committed unit and relays them; it must not raise
    (what it could not send, the sweep sends).
    """

    def __init__(self, engine: AsyncEngine, after_commit: AfterCommit | None = None) -> None:
        self.engine = engine
        self.after_commit = after_commit

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        """A writing transaction: commits at the end of the block, rolls back on any error."""
        async with self.engine.connect() as connection, connection.begin():
            unit = UnitOfWork(connection)
            yield unit
        if unit.outbox_rows and self.after_commit is not None:
            await self.after_commit(unit.outbox_rows)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        """A read-only snapshot; never waits for writers."""
        async with self.engine.connect() as connection:
            await connection.execution_options(sluice_read_only=True)
            async with connection.begin():
                yield UnitOfWork(connection)

    async def create_schema(self) -> None:
        async with self.engine.begin() as connection:
            await connection.run_sync(metadata.create_all)

    async def close(self) -> None:
        await self.engine.dispose()


def open_database(url: str) -> Database:
    """A database on `url`. SQLite gets WAL and BEGIN IMMEDIATE, so that writers queue up."""
    engine = create_async_engine(url, pool_pre_ping=not url.startswith("sqlite"))
    if url.startswith("sqlite"):
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return Database(engine)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver must not begin transactions by itself
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    read_only = connection.get_execution_options().get("sluice_read_only", False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
