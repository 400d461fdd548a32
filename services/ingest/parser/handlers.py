"""What the parser does with an uploaded document."""

from dataclasses import dataclass, field
from functools import partial

import structlog
from sqlalchemy import RowMapping

from libs.contracts import DocumentParsed, DocumentUploaded
from libs.eventbus.subscriptions import Subscriptions
from libs.kernel import NotFoundError, PermanentError
from libs.service.document_watch import DocumentWatch
from libs.service.failures import failing
from libs.storage.keys import generation_prefix, parsed_key, text_key
from libs.storage.ports import ObjectStore
from libs.storage.sql import Database, documents
from libs.storage.sql.document_states import DocumentState
from services.ingest.parser.ports import DocumentParser, Parsed, ParseRequest

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Deps:
    db: Database
    objects: ObjectStore
    parser: DocumentParser
    watch: DocumentWatch = field(default_factory=DocumentWatch)


async def parse(event: DocumentUploaded, deps: Deps) -> None:
    """Store the text and the document model of a generation and announce them.

    Repeats are harmless: the keys carry the generation, the state is compared and set. Work that
    was cancelled, deleted or overtaken by a newer generation stops soon and leaves no files.
    """
    if not await _is_due(event, deps):
        return
    urgent = bool(documents.lane_of(event.priority))
    request = ParseRequest(event.name, event.media_type, urgent=urgent)
    try:
        parsed = await deps.watch.while_due(
            event.document_id,
            deps.parser.parse(deps.objects.stream(event.object_key), request),
            partial(_is_due, event, deps),
        )
    except NotFoundError as exc:
        raise PermanentError(
            "missing-original", "The uploaded file is gone from the store: upload it again."
        ) from exc
    if parsed is None:
        return
    of = (event.tenant, event.document_id, event.generation)
    await deps.objects.put(text_key(*of), parsed.files.text)
    await deps.objects.put(parsed_key(*of), parsed.files.document)
    if not await _announce(event, parsed, deps):
        await _take_back_unless_used(event, deps)


def subscriptions(deps: Deps) -> Subscriptions:
    return Subscriptions().on(
        DocumentUploaded, partial(parse, deps=deps), failed=failing(deps.db, "parse")
    )


async def _announce(event: DocumentUploaded, parsed: Parsed, deps: Deps) -> bool:
    """Make the generation `parsed`; False: nobody waits for that (any more)."""
    of = (event.tenant, event.document_id, event.generation)
    counts = {
        "chars": parsed.char_count,
        "blocks": parsed.block_count,
        "tables": parsed.table_count,
        "rows": parsed.row_count,
        **({"warnings": parsed.warning_count} if parsed.warning_count else {}),
        **({} if parsed.page_count is None else {"pages": parsed.page_count}),
    }
    async with deps.db.work() as sql:
        advanced = await documents.advance(
            sql,
            *of,
            expect={DocumentState.UPLOADED},
            to=DocumentState.PARSED,
            counts=counts,
            media_type=parsed.media_type,
        )
        if advanced:
            await sql.emit(
                DocumentParsed(
                    *of,
                    document_key=parsed_key(*of),
                    text_key=text_key(*of),
                    char_count=parsed.char_count,
                    priority=event.priority,
                ),
                lane=documents.lane_of(event.priority),
            )
    return advanced


async def _is_due(event: DocumentUploaded, deps: Deps) -> bool:
    """Whether the generation still waits to be parsed, from the file that the event names.

    An event that names another file is dropped: it may be another document's or tenant's. The
    reconciler announces the right one.
    """
    async with deps.db.reading() as sql:
        row = await documents.find(sql, event.tenant, event.document_id)
    if row is None or not _waits(event, row):
        return False
    if event.object_key != row["object_key"]:
        log.warning("foreign_object_key_dropped", document_id=event.document_id)
        return False
    return True


def _waits(event: DocumentUploaded, row: RowMapping) -> bool:
    return bool(row["generation"] == event.generation and row["state"] == DocumentState.UPLOADED)


async def _take_back_unless_used(event: DocumentUploaded, deps: Deps) -> None:
    """Remove the files of a parse that came too late: nobody will ever read them."""
    async with deps.db.reading() as sql:
        row = await documents.find(sql, event.tenant, event.document_id)
    if row is not None and row["generation"] == event.generation:
        if row["state"] not in {DocumentState.CANCELLED, DocumentState.DELETED}:
            return
    elif row is not None and row["active_generation"] == event.generation:
        return
    prefix = generation_prefix(event.tenant, event.document_id, event.generation)
    await deps.objects.delete_prefix(prefix)
    log.info("late_parse_dropped", document_id=event.document_id, generation=event.generation)
