"""What each kind of database needs, so that units of work mean the same on all of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from time import monotonic
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from libs.kernel import TransientError
from libs.storage.sql.snapshots import Snapshots, open_snapshots

T = TypeVar("T")

READ_ONLY = "sluice_read_only"  # execution option of a connection whose transaction only reads
WRITE_WAIT_S = 30.0
# How long SQLite itself waits for another process's writer before it is asked anew: it looks after
# 1, 2 and 5 ms, and then ever more seldom, down to ten times a second, between which a process with
# many writers takes every turn.
WRITE_POLL_MS = 8
# Of pages, for each connection. With SQLite's own 2 MB, reading the texts of a search's hits in a
# library of some MB takes twice the time.
SQLITE_CACHE_KB = 16_384
# A statement of ours takes milliseconds: a server that says nothing for so long is gone or frozen.
# (The driver's own limit is wait_for, which may swallow cancellations.)
SERVER_SILENCE_S = 40.0
CONNECT_S = 5.0
# Below what servers and the proxies before them allow a connection to be idle.
RECYCLE_S = 280.0
_SESSION = (
    # Strict whatever the server's default: a value that does not fit is refused, never cut.
    "SET SESSION sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO', "
    f"SESSION innodb_lock_wait_timeout={int(WRITE_WAIT_S)}"
)
_DRIVERS = {"sqlite": "sqlite+aiosqlite", "mysql": "mysql+asyncmy", "mariadb": "mariadb+asyncmy"}


def sql_url(text: str) -> URL:
    """A database's address with the driver that is used. Raises: ValueError that says what may
    stand there.
    """
    try:
        url = make_url(text)
    except ArgumentError as exc:  # its text repeats the address, the password with it
        raise ValueError("DATABASE_URL is no address: mysql://user:password@host/database") from exc
    driver = _DRIVERS.get(url.get_backend_name())
    if driver is None or url.drivername not in {driver, url.get_backend_name()}:
        raise ValueError(
            f"DATABASE_URL begins with {url.drivername}: it may be mysql, mariadb or sqlite"
        )
    return url.set(drivername=driver)


def open_engine(text: str, *, busy_timeout_s: float = WRITE_WAIT_S) -> AsyncEngine:
    """An engine on the database at this address; connects when it is first used.

    Args:
        busy_timeout_s: How long a SQLite writer waits for other processes' writers.
    """
    url = sql_url(text)
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, busy_timeout_s)
    engine = create_async_engine(
        url,
        pool_size=8,
        max_overflow=8,
        pool_timeout=WRITE_WAIT_S,
        pool_pre_ping=True,
        pool_recycle=RECYCLE_S,
        connect_args={
            "charset": "utf8mb4",
            "init_command": _SESSION,
            "connect_timeout": CONNECT_S,
        },
    )
    event.listen(engine.sync_engine, "begin", _begin_on_server)
    return engine


def snapshots_of(text: str, *, busy_timeout_s: float = WRITE_WAIT_S) -> Snapshots | None:
    """How units that only read do so on SQLite; None: as all others."""
    url = sql_url(text)
    if url.get_backend_name() != "sqlite":
        return None
    return open_snapshots(url, partial(_prepare_file, busy_timeout_s))


def silence_s(engine: AsyncEngine) -> float | None:
    """How long an answer may take; SQLite has limits of its own."""
    return None if engine.dialect.name == "sqlite" else SERVER_SILENCE_S


@asynccontextmanager
async def answered(within_s: float | None) -> AsyncIterator[None]:
    """Raises: TransientError when the block takes longer."""
    limit = asyncio.timeout(within_s)
    try:
        async with limit:
            yield
    except TimeoutError as exc:
        if not limit.expired():
            raise
        raise TransientError(f"the SQL server has not answered for {within_s} s") from exc


@asynccontextmanager
async def entered_and_left(
    context: AbstractAsyncContextManager[T], within_s: float | None
) -> AsyncIterator[T]:
    """The context, with a limit for each of its ends. Raises: TransientError."""
    task = asyncio.current_task()
    cancelled_before = task.cancelling() if task else 0
    async with answered(within_s):
        value = await context.__aenter__()
    try:
        _heed_cancellation(task, cancelled_before)
        yield value
    except BaseException as exc:
        async with answered(within_s):
            await context.__aexit__(type(exc), exc, exc.__traceback__)
        raise
    async with answered(within_s):
        await context.__aexit__(None, None, None)


def _heed_cancellation(task: asyncio.Task[Any] | None, cancelled_before: int) -> None:
    """The driver connects with asyncio.wait_for, which before Python 3.12 swallows a cancellation
    that comes together with the connection. Raises: CancelledError.
    """
    if task is not None and task.cancelling() > cancelled_before:
        raise asyncio.CancelledError


def _begin_on_server(connection: Connection) -> None:
    """Readers get one snapshot. Writers see what others have committed by each statement.

    READ COMMITTED is what compare-and-set needs: an UPDATE finds the newest row in any case, and
    the SELECT after a lost race must find it, too. It also takes no gap locks, so writers of
    different rows do not deadlock.
    """
    if connection.get_execution_options().get(READ_ONLY, False):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    else:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")


def _sqlite(url: URL, busy_timeout_s: float) -> AsyncEngine:
    """WAL and BEGIN IMMEDIATE, so that writers queue up."""
    engine = create_async_engine(url, pool_size=8, max_overflow=8, pool_timeout=WRITE_WAIT_S)
    event.listen(engine.sync_engine, "connect", partial(_prepare_sqlite, busy_timeout_s))
    event.listen(engine.sync_engine, "begin", partial(_begin_sqlite, busy_timeout_s))
    return engine


def _prepare_sqlite(busy_timeout_s: float, connection: DBAPIConnection, _record: Any) -> None:
    _prepare_file(busy_timeout_s, connection, _record)
    # A cancelled statement makes SQLAlchemy stop a connection that is being closed already. The
    # driver's thread ends at the first stop, and whoever waits for a second one waits for ever.
    driver = connection.driver_connection
    driver.stop = cache(driver.stop)
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={WRITE_POLL_MS}")
    cursor.close()


def _prepare_file(busy_timeout_s: float, connection: DBAPIConnection, _record: Any) -> None:
    connection.isolation_level = None  # the driver must not begin transactions by itself
    cursor = connection.cursor()
    busy_ms = int(busy_timeout_s * 1000)
    for pragma in (
        f"busy_timeout={busy_ms}",
        "journal_mode=WAL",
        "synchronous=NORMAL",
        f"cache_size={-SQLITE_CACHE_KB}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(busy_timeout_s: float, connection: Connection) -> None:
    deadline = monotonic() + busy_timeout_s
    while True:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except OperationalError as exc:
            name = getattr(exc.orig, "sqlite_errorname", "")
            if not name.startswith("SQLITE_BUSY") or monotonic() > deadline:
                raise
        else:
            return
