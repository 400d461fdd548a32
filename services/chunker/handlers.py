"""What the chunker does with a parsed document."""

from dataclasses import dataclass, field
from functools import partial

import structlog
from sqlalchemy import RowMapping

from libs.chunking.chunking import ChunkSet
from libs.chunking.cutting import Helpers, cut
from libs.chunking.plan import requested_fields
from libs.contracts import DocumentChunked, DocumentParsed
from libs.documents.model import ParsedDocument
from libs.eventbus import Subscriptions
from libs.kernel import NotFoundError, PermanentError, TransientError
from libs.service.document_watch import DocumentWatch
from libs.service.failures import failing
from libs.service.recutting import load_parse
from libs.storage.keys import parsed_key, text_key
from libs.storage.ports import ObjectStore
from libs.storage.sql import Database, chunks, documents
from libs.storage.sql.document_states import MISSING_PARSE, DocumentState

log = structlog.get_logger(__name__)

CHUNKS_PER_UNIT = 1000


@dataclass(frozen=True, slots=True)
class Deps:
    db: Database
    objects: ObjectStore
    watch: DocumentWatch = field(default_factory=DocumentWatch)
    helpers: Helpers = field(default_factory=Helpers)


async def chunk(event: DocumentParsed, deps: Deps) -> None:
    """Store the chunks of a generation and announce them.

    Repeats are harmless: ids derive from document, generation and ordinal, and the state is
    compared and set. Large documents are written in several short units; the last one flips the
    state, if the set is whole, so a half-written set is never announced. An event that names the
    files of another document or generation is dropped: the reconciler announces the right ones.
    """
    async with deps.db.reading() as sql:
        row = await documents.find(sql, event.tenant, event.document_id)
    if row is None or not _waits(event, row):
        return
    if not _names_its_own(event):
        log.warning("foreign_object_key_dropped", document_id=event.document_id)
        return
    made = await deps.watch.while_due(
        event.document_id, _made(event, row, deps), partial(_is_due, event, deps)
    )
    if made is not None:
        await _store(event, *made, deps)


def subscriptions(deps: Deps) -> Subscriptions:
    return Subscriptions().on(
        DocumentParsed, partial(chunk, deps=deps), failed=failing(deps.db, "chunk")
    )


async def _load(event: DocumentParsed, deps: Deps) -> ParsedDocument:
    try:
        return await load_parse(deps.objects, (event.tenant, event.document_id, event.generation))
    except NotFoundError as exc:
        raise PermanentError(
            MISSING_PARSE, "The parsed text is gone from the store: parse the document again."
        ) from exc


async def _made(
    event: DocumentParsed, row: RowMapping, deps: Deps
) -> tuple[ChunkSet, dict[str, object]]:
    """The chunks, and the record of the plan they were made by. Stops when it is cancelled."""
    document = await _load(event, deps)
    wanted = requested_fields(row["plan"])
    made = await cut(
        document,
        wanted,
        deps.helpers,
        tenant=event.tenant,
        document_id=event.document_id,
        generation=event.generation,
    )
    if not made.chunks.children:
        raise PermanentError("empty", "The document has no text that could be searched.")
    return made.chunks, made.record(wanted)


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
            # Locked: chunks of a generation that nobody wants any more would stay for good.
            row = await documents.find(sql, event.tenant, event.document_id, lock=True)
            if not _waits(event, row):
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
        if await chunks.extent(sql, *of) != chunks.extent_of([*made.parents, *made.children]):
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


async def _is_due(event: DocumentParsed, deps: Deps) -> bool:
    async with deps.db.reading() as sql:
        return _waits(event, await documents.find(sql, event.tenant, event.document_id))


def _names_its_own(event: DocumentParsed) -> bool:
    of = (event.tenant, event.document_id, event.generation)
    return (event.document_key, event.text_key) == (parsed_key(*of), text_key(*of))


def _waits(event: DocumentParsed, row: RowMapping | None) -> bool:
    """Whether the generation still waits for its chunks."""
    return (
        row is not None
        and row["generation"] == event.generation
        and row["state"] == DocumentState.PARSED
    )
