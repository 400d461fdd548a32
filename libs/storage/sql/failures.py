"""The database library's errors, as the platform's own."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from libs.kernel import ConflictError, DiskError, TransientError

_SQLITE_NOT_WRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
# MySQL and MariaDB tell by numbers.
_FULL = {1021, 1114}  # disk full, table is full
_NO_SPACE = "28"  # the system's number, at the end of errors in writing a file
_FILE_ERRORS = {3, 1026, 1030}
# Deadlock, lock wait timeout, row changed since it was read: the unit is undone.
_LOST_RACES = {1205, 1213, 1020}
# Whatever class the driver gives them, these pass: too many connections, going down, killed, time
# limits, read only (a replica that is to take over), no such table (yet), all of the connection.
_PASSING = {1040, 1053, 1129, 1146, 1158, 1159, 1160, 1161, 1203, 1226, 1290, 1317, 1836}
_PASSING |= {1927, 1969, 3024, 4031, *range(2000, 2100)}


class LostRaceError(TransientError):
    """Another unit was faster, and the database undid this one whole: repeat it at once."""


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
        if _number(exc.orig) in _LOST_RACES:
            raise LostRaceError(f"another SQL writer was faster: {exc.orig}") from exc
        if _may_pass(exc):
            raise TransientError(f"SQL is not available: {exc.orig}") from exc
        raise


def _may_pass(exc: DBAPIError) -> bool:
    if exc.connection_invalidated or _number(exc.orig) in _PASSING:
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
        number = _number(error)
        in_file = number in _FILE_ERRORS and re.search(rf"\b{_NO_SPACE}\b", str(error))
        return True if number in _FULL or in_file else None
    primary = code & 0xFF  # the rest of the number tells details
    if primary == sqlite3.SQLITE_FULL:
        return True
    return False if primary in _SQLITE_NOT_WRITABLE else None


def _number(error: BaseException | None) -> int | None:
    """The server's error number."""
    number = error.args[0] if error is not None and error.args else None
    return number if isinstance(number, int) else None
