"""The database library's errors, as the platform's own."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from libs.kernel import ConflictError, DiskError, TransientError

_SQLITE_NOT_WRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
_MYSQL_FULL = {1021, 1114}  # disk full, table is full


@contextmanager
def sql_errors() -> Iterator[None]:
    """Errors of the moment become TransientError, those of the disk DiskError, and broken
    uniqueness ConflictError.

    A statement that is wrong in itself stays the library's error: that is a bug.
    """
    try:
        yield
    except IntegrityError as exc:
        # the error names tables and columns: those are not for clients
        raise ConflictError("somebody else wrote the same at this moment: try again") from exc
    except PoolTimeoutError as exc:
        raise TransientError("every SQL connection is in use") from exc
    except DBAPIError as exc:
        if (full := _disk_is_full(exc.orig)) is not None:
            raise DiskError(f"SQL cannot write: {exc.orig}", full=full) from exc
        if _may_pass(exc):
            raise TransientError(f"SQL is not available: {exc.orig}") from exc
        raise


def _may_pass(exc: DBAPIError) -> bool:
    if exc.connection_invalidated:
        return True
    if not isinstance(exc, OperationalError | InterfaceError):
        return False
    # SQLite reports wrong statements as operational errors, too, with its plainest code; a table
    # that is not there yet is the exception: another process is about to create it.
    code = getattr(exc.orig, "sqlite_errorcode", None)
    return code != sqlite3.SQLITE_ERROR or "no such table" in str(exc.orig)


def _disk_is_full(error: BaseException | None) -> bool | None:
    """True: it is full; False: it cannot be written or read; None: the disk is not the reason."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        number = error.args[0] if error is not None and error.args else None
        return True if number in _MYSQL_FULL else None
    primary = code & 0xFF  # the rest of the number tells details
    if primary == sqlite3.SQLITE_FULL:
        return True
    return False if primary in _SQLITE_NOT_WRITABLE else None
