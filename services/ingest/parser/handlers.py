"""What the parser does with an uploaded document."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from libs.contracts import DocumentParsed, DocumentUploaded
from libs.eventbus.subscriptions import Subscriptions
from libs.kernel import NotFoundError, PermanentError
from libs.service.failures import failing
from libs.storage.keys import parsed_key, text_key
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
    cancel_check_s: float = 1.0  # how often a running parse asks whether it still matters


async def parse(event: DocumentUploaded, deps: Deps) -> None:
    """Store the text and the document model of a generation and announce them.

    Repeats are harmless: the keys carry the generation, the state is compared and set. Work that
    was cancelled, deleted or overtaken by a newer generation stops within `cancel_check_s`.
    """
    if not await _is_due(event, deps):
        return
    request = ParseRequest(
        event.name, event.media_type, event.size_bytes, bool(documents.lane_of(event.priority))
    )
    try:
        parsed = await _while_due(
            event, deps, deps.parser.parse(deps.objects.stream(event.object_key), request)
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
    await _announce(event, parsed, deps)


def subscriptions(deps: Deps) -> Subscriptions:
    return Subscriptions().on(
        DocumentUploaded, partial(parse, deps=deps), failed=failing(deps.db, "parse")
    )


async def _announce(event: DocumentUploaded, parsed: Parsed, deps: Deps) -> None:
    of = (event.tenant, event.document_id, event.generation)
    counts = {
        "chars": parsed.char_count,
        "blocks": parsed.block_count,
        "tables": parsed.table_count,
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


async def _while_due(
    event: DocumentUploaded, deps: Deps, work: Coroutine[Any, Any, Parsed]
) -> Parsed | None:
    """The work's result; None, with the work cancelled, once nobody waits for it any more."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=deps.cancel_check_s)
            if not task.done() and not await _is_due(event, deps):
                log.info("parse_cancelled", document_id=event.document_id)
                return None
        return task.result()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


async def _is_due(event: DocumentUploaded, deps: Deps) -> bool:
    """Whether the generation still waits to be parsed."""
    of = (event.tenant, event.document_id, event.generation)
    async with deps.db.reading() as sql:
        if not await documents.is_current(sql, *of):
            return False
        row = await documents.load(sql, event.tenant, event.document_id)
    return bool(row["state"] == DocumentState.UPLOADED)
