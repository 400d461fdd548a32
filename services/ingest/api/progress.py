"""A document's progress as server-sent events, read from its timeline in SQL."""

import asyncio
from collections.abc import AsyncGenerator

from sqlalchemy import RowMapping
from sse_starlette import ServerSentEvent

from libs.storage.sql import Database, documents
from libs.storage.sql.document_states import FINAL, DocumentState
from libs.web.sse import event
from services.ingest.api import views

_MAX_POLL_S = 2.0
_SLOWER = 1.25  # a document that waits long is looked at less and less often


async def news(
    db: Database, tenant: str, document_id: str, after_seq: int
) -> tuple[list[RowMapping], str | None]:
    """The timeline after `after_seq` and the state; None: the record is gone, deletion is done."""
    async with db.reading() as sql:
        row = await documents.find(sql, tenant, document_id)
        entries = await documents.timeline(sql, tenant, document_id, after_seq=after_seq)
    return entries, row["state"] if row is not None else None


async def follow(
    db: Database, tenant: str, document_id: str, after_seq: int, *, poll_s: float
) -> AsyncGenerator[ServerSentEvent, None]:
    """Every entry after `after_seq`, as it comes, until the document's state is final.

    The event's name is the stage, its id the seq to resume from.
    """
    wait_s = poll_s
    while True:
        entries, state = await news(db, tenant, document_id, after_seq)
        for row in entries:
            after_seq = row["seq"]
            yield event(row["stage"], views.entry(row).model_dump(), seq=after_seq)
        if state is None:
            yield event(DocumentState.DELETED, {"stage": DocumentState.DELETED})
        if state is None or state in FINAL:
            return
        wait_s = poll_s if entries else min(wait_s * _SLOWER, max(poll_s, _MAX_POLL_S))
        await asyncio.sleep(wait_s)
