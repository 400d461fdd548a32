"""Making the tables."""

from sqlalchemy import Connection, text

from libs.storage.sql.tables import metadata

# By code points and with every trailing blank, as SQLite compares: `a`, `A`, `ä` and `a ` are four
# ids. No collation of this kind has the same name on both servers.
_COLLATIONS = {True: "utf8mb4_nopad_bin", False: "utf8mb4_0900_bin"}


def create_tables(connection: Connection) -> None:
    """Create what is missing."""
    use_exact_text(connection)
    metadata.create_all(connection)


def use_exact_text(connection: Connection) -> None:
    """Let the database's new tables hold any text and tell every two texts apart."""
    if connection.dialect.name == "sqlite":
        return
    wanted = _COLLATIONS[connection.dialect.is_mariadb]  # type: ignore[attr-defined]
    if connection.scalar(text("SELECT @@collation_database")) != wanted:
        connection.execute(text(f"ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {wanted}"))
