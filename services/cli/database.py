"""The database, opened by a command itself: what it needs of it comes before any service runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.kernel import PermanentError, TransientError
from libs.storage.sql import Database, open_database
from services.cli.errors import CliError, ExitCode


@asynccontextmanager
async def own_database(url: str) -> AsyncIterator[Database]:
    """The database alone, whatever it holds. Raises: CliError for an address that is none, what
    was refused for good, and a database that is away.
    """
    try:
        db = open_database(url)
    except ValueError as exc:
        raise CliError(str(exc), ExitCode.USAGE) from exc
    try:
        yield db
    except PermanentError as exc:
        raise CliError(exc.detail, ExitCode.FAILED) from exc
    except TransientError as exc:
        raise CliError(str(exc), ExitCode.UNREACHABLE) from exc
    finally:
        await db.close()
