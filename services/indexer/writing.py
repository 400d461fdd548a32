"""Bringing a generation's chunks into both indexes, as long as it matters."""

import asyncio
from collections.abc import Sequence
from enum import Enum

from sqlalchemy import RowMapping

from libs.contracts import DocumentChunked
from libs.documents.model import Chunk
from libs.kernel import PermanentError
from libs.observability.metrics import EMBEDDED_PASSAGES, STAGE_SECONDS
from libs.storage.sql import chunks, documents
from libs.storage.sql.document_states import DocumentState
from services.indexer.deps import Deps
from services.indexer.domain import batches, searchable_text, to_row

BATCH = 32


class Standing(Enum):
    DUE = "due"  # waits to be indexed
    DONE = "done"  # is what search shows
    WAITS = "waits"  # failed, or resumed before this stage: what is there is used or overwritten
    LOST = "lost"  # cancelled, deleted or overtaken: what was written has to go


async def standing_of(event: DocumentChunked, deps: Deps) -> Standing:
    """Whether a generation still is to be indexed, is, or never will be."""
    async with deps.db.reading() as sql:
        row = await documents.find(sql, event.tenant, event.document_id)
    return _standing(event, row)


async def write(event: DocumentChunked, deps: Deps, *, urgent: bool) -> RowMapping | None:
    """Bring every chunk into both indexes.

    Returns: the document's row as it was when the chunks were read; None: stopped, as nobody
    waits for it any more. Raises: PermanentError when the chunk set is not whole.
    """
    async with deps.db.reading() as sql:
        row = await documents.find(sql, event.tenant, event.document_id)
        children = await chunks.children(sql, event.tenant, event.document_id, event.generation)
    if row is None or _standing(event, row) is not Standing.DUE:
        return None
    # The row's count, not the event's: a stale one may tell of a set that was cut again since.
    if len(children) != row["counts"].get("chunks", event.child_count):
        raise PermanentError(
            "missing-chunks", "Not every chunk is there: resume the document to have it cut again."
        )

    async def is_due() -> bool:
        return await standing_of(event, deps) is Standing.DUE

    async def all_batches() -> bool:
        for batch in batches(children, BATCH):
            if not await is_due():
                return False
            await _write_batch(event, deps, batch, domain=row["domain"], urgent=urgent)
        return True

    whole = await deps.watch.while_due(event.document_id, all_batches(), is_due)
    return row if whole else None


def _standing(event: DocumentChunked, row: RowMapping | None) -> Standing:
    if row is None or row["state"] == DocumentState.DELETED:
        return Standing.LOST
    if row["active_generation"] == event.generation:
        return Standing.DONE
    if row["generation"] != event.generation:
        return Standing.LOST
    match row["state"]:
        case DocumentState.CHUNKED:
            return Standing.DUE
        case DocumentState.CANCELLED:
            return Standing.LOST
    return Standing.WAITS


async def _write_batch(
    event: DocumentChunked, deps: Deps, batch: Sequence[Chunk], *, domain: str, urgent: bool
) -> None:
    await deps.precedence.turn(urgent=urgent)
    with STAGE_SECONDS.labels("embed").time():
        vectors = await deps.embedder.embed_passages([searchable_text(chunk) for chunk in batch])
    EMBEDDED_PASSAGES.inc(len(batch))
    rows = [
        to_row(
            chunk,
            vector,
            tenant=event.tenant,
            document_id=event.document_id,
            generation=event.generation,
            domain=domain,
        )
        for chunk, vector in zip(batch, vectors, strict=True)
    ]
    with STAGE_SECONDS.labels("index").time():
        outcomes = await asyncio.gather(
            deps.vectors.upsert(deps.active.vector_collection, rows),
            deps.keywords.upsert(deps.active.keyword_index, rows),
            return_exceptions=True,  # no write may still be under way when this has ended
        )
    for outcome in outcomes:
        if outcome is not None:
            raise outcome
