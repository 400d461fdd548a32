"""Bringing a database to the newest schema, with Alembic. Imported only by what migrates."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from libs.storage.sql.schema import REVISION, SchemaError, check_revision, current_revision

# By code points and with every trailing blank, as SQLite compares: `a`, `A`, `ä` and `a ` are four
# ids. No collation of this kind has the same name on both servers.
_COLLATIONS = {True: "utf8mb4_nopad_bin", False: "utf8mb4_0900_bin"}
LOCK_WAIT_S = 60


def configuration(connection: Connection | None = None) -> Config:
    """What Alembic needs to know."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.set_main_option("file_template", "r%%(rev)s_%%(slug)s")
    config.attributes["connection"] = connection
    return config


def migrate(connection: Connection) -> tuple[str | None, str | None]:
    """Take every step to the newest schema, and commit; returns the number before and after.

    Safe to repeat, and several at once take turns. Tables that were made before there were numbers
    are recognised. Raises: SchemaError when a newer Sluice has made the schema.
    """
    with _alone(connection):
        before = current_revision(connection)
        if before is None or before < REVISION:
            _use_exact_text(connection)
            command.upgrade(configuration(connection), "head")
        check_revision(connection)
        after = current_revision(connection)
        connection.commit()  # whoever is let in next has to see this number
        return before, after


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """SQLite's transaction keeps others out; on a server DDL commits, so a named lock does."""
    if connection.dialect.name == "sqlite":
        yield
        return
    lock = text("SELECT GET_LOCK('sluice-migrate', :wait_s)")
    if connection.scalar(lock, {"wait_s": LOCK_WAIT_S}) != 1:
        raise SchemaError("another process is migrating the database: try again")
    try:
        yield
    finally:
        connection.scalar(text("SELECT RELEASE_LOCK('sluice-migrate')"))


def _use_exact_text(connection: Connection) -> None:
    """Let the database's new tables hold any text and tell every two texts apart."""
    if connection.dialect.name == "sqlite":
        return
    wanted = _COLLATIONS[connection.dialect.is_mariadb]  # type: ignore[attr-defined]
    if connection.scalar(text("SELECT @@collation_database")) != wanted:
        connection.execute(text(f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {wanted}"))
