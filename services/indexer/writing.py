"""Bringing a generation's chunks into both indexes, as long as it matters."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import RowMapping

from libs.contracts import DocumentChunked
from libs.documents.analysis import analyse
from libs.documents.model import Chunk
from libs.kernel import PermanentError
from libs.observability.metrics import EMBEDDED_PASSAGES, STAGE_SECONDS
from libs.storage.sql import chunks, documents
from libs.storage.sql.active_index import ActiveIndex, IndexSets
from libs.storage.sql.document_states import DocumentState
from services.indexer.deps import Deps
from services.indexer.domain import Rank, batches, searchable_text, to_row

BATCH = 32
# What nobody waits for comes in small ones, as somebody's may have to wait for one to end.
BACKGROUND_BATCH = 8


@dataclass(frozen=True, slots=True)
class Written:
    """What was brought where: the document's row when its chunks were read, and the sets then."""

    row: RowMapping
    sets: IndexSets


@dataclass(frozen=True, slots=True)
class Target:
    """Whose chunks go into which indexes."""

    tenant: str
    document_id: str
    generation: int
    domain: str
    indexes: Collection[ActiveIndex]


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


async def write(event: DocumentChunked, deps: Deps, *, rank: Rank) -> Written | None:
    """Bring every chunk into the active set of indexes, and into one that is being built.

    Returns: None: stopped, as nobody waits for it any more. Raises: PermanentError when the chunk
    set is not whole.
    """
    sets = await deps.sets()
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
    of = (event.tenant, event.document_id, event.generation)
    target = Target(*of, row["domain"], sets.every)

    async def is_due() -> bool:
        return await standing_of(event, deps) is Standing.DUE

    async def all_batches() -> bool:
        for batch in batches(children, BACKGROUND_BATCH if rank is Rank.BACKGROUND else BATCH):
            if not await is_due():
                return False
            await deps.precedence.turn(rank)
            await write_batch(target, deps, batch)
        return True

    whole = await deps.watch.while_due(event.document_id, all_batches(), is_due)
    return Written(row, sets) if whole else None


async def write_batch(target: Target, deps: Deps, batch: Sequence[Chunk]) -> None:
    """Raises: TransientError, once nothing is being written any more."""
    texts = [searchable_text(chunk) for chunk in batch]
    vectors = {}
    with STAGE_SECONDS.labels("embed").time():
        for model in {index.embedding_model for index in target.indexes}:
            vectors[model] = await deps.embedder_of(model).embed_passages(texts)
            EMBEDDED_PASSAGES.inc(len(batch))
    terms = [analyse(text) for text in texts]
    writes = []
    for index in target.indexes:
        rows = [
            to_row(
                chunk,
                vector,
                words,
                tenant=target.tenant,
                document_id=target.document_id,
                generation=target.generation,
                domain=target.domain,
            )
            for chunk, vector, words in zip(
                batch, vectors[index.embedding_model], terms, strict=True
            )
        ]
        writes += [
            deps.vectors.upsert(index.vector_collection, rows),
            deps.keywords.upsert(index.keyword_index, rows),
        ]
    with STAGE_SECONDS.labels("index").time():
        # No write may still be under way when this has ended.
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


async def drop_rows(
    deps: Deps, tenant: str, document_id: str, *, generations: range | None = None
) -> None:
    """Drop a document's rows, or those of some generations, from every set there is now."""
    for index in (await deps.sets()).every:
        of = (tenant, document_id)
        await deps.vectors.delete(index.vector_collection, *of, generations=generations)
        await deps.keywords.delete(index.keyword_index, *of, generations=generations)


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
