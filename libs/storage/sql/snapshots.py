"""Reading SQLite with few changes of threads.

The driver for asyncio changes threads for every step of a statement and of a transaction: nine
times for one SELECT, which takes longer than the SELECT itself. Units that only read take one
change for each statement.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, Executable, Result, create_engine, event

from libs.kernel import TransientError

_THREADS = 8


class Snapshots:
    """Read-only snapshots of a SQLite file, each on a connection of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(_THREADS, "sqlite-reader")

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Snapshot"]:
        snapshot = Snapshot(self._engine, self._threads)
        try:
            yield snapshot
        finally:
            snapshot.close()

    def dispose(self) -> None:
        """Statements that still run end by themselves."""
        self._threads.shutdown(wait=False)
        self._engine.dispose()


class Snapshot:
    """What the file held when the first statement began."""

    def __init__(self, engine: Engine, threads: ThreadPoolExecutor) -> None:
        self._engine = engine
        self._threads = threads
        self._connection: Connection | None = None
        self._running: Future[Result[Any]] | None = None

    async def execute(self, statement: Executable, *args: Any) -> Result[Any]:
        """All rows are there when this returns. Raises: TransientError: the file was closed."""
        try:
            self._running = self._threads.submit(self._execute, statement, *args)
        except RuntimeError as exc:  # the threads take no more: the process is about to end
            raise TransientError("the database was closed") from exc
        return await asyncio.wrap_future(self._running)

    def close(self) -> None:
        """Let the snapshot go, once a statement that nobody waits for any more is over."""
        if self._running is not None:
            self._running.add_done_callback(lambda _: self._let_go())

    def _execute(self, statement: Executable, *args: Any) -> Result[Any]:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection.execute(statement, *args).freeze()()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()


def open_snapshots(url: URL, prepare: Any) -> Snapshots:
    """
    Args:
        url: Of a SQLite file.
        prepare: Called with each new connection of the driver, and its record.
    """
    # Threads bound how many are in use: a statement never waits for a connection in its thread.
    engine = create_engine(url.set(drivername="sqlite"), pool_size=_THREADS, max_overflow=-1)
    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return Snapshots(engine)
