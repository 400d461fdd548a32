"""Bringing a generation's chunks into both indexes, as long as it matters."""

import asyncio
from collections.abc import Sequence
from enum import Enum

from libs.contracts import DocumentChunked
from libs.documents.model import Chunk
from libs.observability.metrics import EMBEDDED_PASSAGES, STAGE_SECONDS
from libs.service.due import while_due
from libs.storage.sql import chunks, documents
from libs.storage.sql.document_states import DocumentState
from services.indexer.deps import Deps
from services.indexer.domain import batches, searchable_text, to_row

BATCH = 32


class Standing(Enum):
    DUE = "due"  # waits to be indexed
    DONE = "done"  # is what search shows
    LOST = "lost"  # cancelled, failed, deleted or overtaken: what was written has to go


async def standing_of(event: DocumentChunked, deps: Deps) -> Standing:
    """Whether a generation still is to be indexed, is, or never will be."""
    async with deps.db.reading() as sql:
        row = await documents.find(sql, event.tenant, event.document_id)
    if row is None or row["state"] == DocumentState.DELETED:
        return Standing.LOST
    if row["active_generation"] == event.generation:
        return Standing.DONE
    newest = row["generation"] == event.generation
    return Standing.DUE if newest and row["state"] == DocumentState.CHUNKED else Standing.LOST


async def write(event: DocumentChunked, deps: Deps, *, urgent: bool) -> bool:
    """Bring every chunk into both indexes; False: stopped, as nobody waits for it any more."""
    async with deps.db.reading() as sql:
        row = await documents.find(sql, event.tenant, event.document_id)
        children = await chunks.children(sql, event.tenant, event.document_id, event.generation)
    domain = row["domain"] if row is not None else ""

    async def is_due() -> bool:
        return await standing_of(event, deps) is Standing.DUE

    for batch in batches(children, BATCH):
        work = _write_batch(event, deps, batch, domain=domain, urgent=urgent)
        if not await while_due(work, is_due, check_s=deps.cancel_check_s):
            return False
    return True


async def _write_batch(
    event: DocumentChunked, deps: Deps, batch: Sequence[Chunk], *, domain: str, urgent: bool
) -> bool:
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
        await asyncio.gather(
            deps.vectors.upsert(deps.active.vector_collection, rows),
            deps.keywords.upsert(deps.active.keyword_index, rows),
        )
    return True
