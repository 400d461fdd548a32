"""What a retry leaves behind for people."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from libs.eventbus.ledger import MAX_ERROR_CHARS, Ledger
from libs.kernel import now_us
from libs.storage.sql.tables import outbox
from tests.servers.databases import sqlite


@dataclass
class Read:
    topic: str = "documents.uploaded.v1"
    partition: int = 0
    offset: int = 4
    timestamp: int = 0
    key: bytes | None = b"d1"
    value: bytes | None = b"x"
    headers: tuple[tuple[str, bytes], ...] = (("ce_id", b"1"),)


async def test_a_retry_says_why_the_try_before_did_not_succeed(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as db:
        ledger = Ledger(db, "parser", {"documents.uploaded.v1": "documents.uploaded.v1"})
        await ledger.retry(Read(), 2, 30.0, "TransientError('HTTP 429')" + "x" * 10_000)
        async with db.reading() as sql:
            (row,) = await sql.rows(select(outbox))
    assert row["topic"] == "documents.uploaded.v1.parser.retry"
    assert row["headers"]["attempt"] == "2"
    assert row["headers"]["retry_error"].startswith("TransientError('HTTP 429')")
    assert len(row["headers"]["retry_error"]) == MAX_ERROR_CHARS
    assert row["not_before"] > now_us()
