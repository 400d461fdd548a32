"""Which schema a database has, and whether it is the one that this code knows.

Revisions are numbered `0001`, `0002`, …; `migrations/versions` holds a file for each. Services only
compare numbers, so they need no migration library.
"""

from sqlalchemy import Connection, inspect, text

from libs.kernel import TransientError

REVISION = "0001"  # the newest in migrations/versions
VERSION_TABLE = "alembic_version"


class SchemaError(TransientError):
    """The tables are not those that this code knows; the text says what to run."""

    def __init__(self, message: str) -> None:
        super().__init__(message, missing="schema")


def check_revision(connection: Connection) -> None:
    """Raises: SchemaError."""
    found = current_revision(connection)
    if found == REVISION:
        return
    if found is not None and found > REVISION:
        raise SchemaError(
            f"the database has schema {found}, made by a newer Sluice; this one knows {REVISION}: "
            "start the newer version"
        )
    has = "no schema of Sluice" if found is None else f"schema {found}"
    raise SchemaError(f"the database has {has}, wanted is {REVISION}: run `sluice migrate`")


def current_revision(connection: Connection) -> str | None:
    """The schema's number; None: it has none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return None if found is None else str(found)
