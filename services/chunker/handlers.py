"""What the chunker does with a parsed document."""

import asyncio
from dataclasses import dataclass
from functools import partial

from libs.contracts import DocumentChunked, DocumentParsed
from libs.documents.model import ParsedDocument
from libs.documents.serialise import DocumentFiles, load_document
from libs.eventbus import Subscriptions
from libs.kernel import NotFoundError, PermanentError, TransientError
from libs.service.failures import failing
from libs.storage.ports import ObjectStore
from libs.storage.sql import Database, UnitOfWork, chunks, documents
from libs.storage.sql.document_states import MISSING_PARSE, DocumentState
from services.chunker.domain.chunking import ChunkSet, chunk_document
from services.chunker.domain.plan import (
    ChunkPlan,
    override_plan,
    plan_record,
    recommend_plan,
    requested_fields,
)
from services.chunker.domain.profile import profile_of

CHUNKS_PER_UNIT = 1000


@dataclass(frozen=True, slots=True)
class Deps:
    db: Database
    objects: ObjectStore


async def chunk(event: DocumentParsed, deps: Deps) -> None:
    """Store the chunks of a generation and announce them.

    Repeats are harmless: ids derive from document, generation and ordinal, and the state is
    compared and set. Large documents are written in several short units; the last one flips the
    state, if the set is whole, so a half-written set is never announced.
    """
    async with deps.db.reading() as sql:
        if not await _is_due(event, sql):
            return
        row = await documents.load(sql, event.tenant, event.document_id)
    document = await _load(event, deps)
    wanted = requested_fields(row["plan"])
    plan, made = await asyncio.to_thread(_chunk, document, wanted, event)
    if not made.children:
        raise PermanentError("empty", "The document has no text that could be searched.")
    await _store(event, made, plan_record(plan, wanted), deps)


def subscriptions(deps: Deps) -> Subscriptions:
    return Subscriptions().on(
        DocumentParsed, partial(chunk, deps=deps), failed=failing(deps.db, "chunk")
    )


async def _load(event: DocumentParsed, deps: Deps) -> ParsedDocument:
    try:
        model = await deps.objects.get(event.document_key)
        text = await deps.objects.get(event.text_key)
    except NotFoundError as exc:
        raise PermanentError(
            MISSING_PARSE, "The parsed text is gone from the store: parse the document again."
        ) from exc
    return await asyncio.to_thread(load_document, DocumentFiles(model, text))


def _chunk(
    document: ParsedDocument, wanted: dict[str, object], event: DocumentParsed
) -> tuple[ChunkPlan, ChunkSet]:
    plan = override_plan(recommend_plan(profile_of(document)), wanted)
    return plan, chunk_document(document, plan, event.document_id, event.generation)


async def _store(
    event: DocumentParsed, made: ChunkSet, plan: dict[str, object], deps: Deps
) -> None:
    of = (event.tenant, event.document_id, event.generation)
    pending = [*made.parents, *made.children]
    if len(pending) > CHUNKS_PER_UNIT:
        async with deps.db.work() as sql:
            await chunks.clear(sql, *of)
    while len(pending) > CHUNKS_PER_UNIT:
        batch, pending = pending[:CHUNKS_PER_UNIT], pending[CHUNKS_PER_UNIT:]
        async with deps.db.work() as sql:
            if not await _is_due(event, sql):
                return
            await chunks.add(sql, *of, batch)
    counts = {"parents": len(made.parents), "chunks": len(made.children)}
    async with deps.db.work() as sql:
        advanced = await documents.advance(
            sql,
            *of,
            expect={DocumentState.PARSED},
            to=DocumentState.CHUNKED,
            counts=counts,
            plan=plan,
        )
        if not advanced:
            return
        if len(made.parents) + len(made.children) <= CHUNKS_PER_UNIT:
            await chunks.clear(sql, *of)
        await chunks.add(sql, *of, pending)
        if await chunks.count(sql, *of) != len(made.parents) + len(made.children):
            raise TransientError("another chunker began anew with this document in between")
        await sql.emit(
            DocumentChunked(
                *of,
                parent_count=len(made.parents),
                child_count=len(made.children),
                priority=event.priority,
            ),
            lane=documents.lane_of(event.priority),
        )


async def _is_due(event: DocumentParsed, sql: UnitOfWork) -> bool:
    """Whether the generation still waits for its chunks."""
    of = (event.tenant, event.document_id, event.generation)
    if not await documents.is_current(sql, *of):
        return False
    row = await documents.load(sql, event.tenant, event.document_id)
    return bool(row["state"] == DocumentState.PARSED)
