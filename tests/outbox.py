"""What left a database through its outbox."""

from typing import Any

from sqlalchemy import select

from libs.contracts import decode
from libs.storage.sql import Database
from libs.storage.sql.tables import outbox


async def emitted(db: Database) -> list[tuple[str, Any]]:
    """(topic, event) of every row, oldest first."""
    async with db.reading() as sql:
        rows = await sql.rows(select(outbox).order_by(outbox.c.created_at, outbox.c.id))
    return [(row["topic"], decode(row["value"])) for row in rows]


async def announced(db: Database) -> list[Any]:
    """The event of every row, oldest first."""
    return [event for _, event in await emitted(db)]
