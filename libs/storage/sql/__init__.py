"""SQL: tables, units of work with compare-and-set, the outbox and the repositories."""

from libs.storage.sql.tables import metadata
from libs.storage.sql.work import Database, OutboxRow, UnitOfWork, open_database

__all__ = ["Database", "OutboxRow", "UnitOfWork", "metadata", "open_database"]
