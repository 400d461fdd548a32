"""Cutting a document anew from a parse that is stored: a new generation, and no parser."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import RowMapping

from libs.contracts import DocumentParsed
from libs.documents.model import ParsedDocument
from libs.documents.serialise import DocumentFiles, load_document
from libs.kernel import NotFoundError
from libs.storage.keys import generation_prefix, parsed_key, text_key
from libs.storage.ports import ObjectStore
from libs.storage.sql import Database, UnitOfWork, documents
from libs.storage.sql.document_events import lane_of, pending_event, uploaded_event
from libs.storage.sql.document_states import DocumentState

BACKGROUND = "background"  # the priority of work that nobody waits for


async def newest_parse(objects: ObjectStore, row: RowMapping) -> int | None:
    """The generation whose parse can be cut again; None: no stored parse is whole."""
    of = (row["tenant"], row["id"])
    for generation in (row["generation"], row["active_generation"]):
        if generation is not None and await is_stored(objects, (*of, generation)):
            return int(generation)
    return None


async def is_stored(objects: ObjectStore, of: tuple[str, str, int]) -> bool:
    """Whether a generation's parse (tenant, document id, generation) is there and whole.

    Raises: TransientError.
    """
    return {parsed_key(*of), text_key(*of)} <= set(await objects.keys(generation_prefix(*of)))


async def load_parse(objects: ObjectStore, of: tuple[str, str, int]) -> ParsedDocument:
    """A generation's parse.

    Raises: NotFoundError; PermanentError `damaged-parse`; TransientError.
    """
    model = await objects.get(parsed_key(*of))
    text = await objects.get(text_key(*of))
    return await asyncio.to_thread(load_document, DocumentFiles(model, text))


async def recut(
    db: Database,
    objects: ObjectStore,
    row: RowMapping,
    source: int,
    *,
    plan: Mapping[str, Any] | None = None,
    why: str = "new plan",
    background: bool = False,
) -> RowMapping:
    """Begin a generation after that of `row` from the parse of generation `source`.

    It starts as `uploaded` and its files are copied before it becomes `parsed`: whoever dies in
    between leaves a generation that the reconciler has parsed in full.

    Args:
        plan: What to override of the recommended plan; None: what was asked for before.
        background: Live work goes first.

    Returns: the row afterwards. Raises: NotFoundError, TransientError; ConflictError when the
    document was changed since `row`.
    """
    of = (row["tenant"], row["id"])
    async with db.reading() as sql:
        counts = _parse_counts(await documents.timeline(sql, *of), source)
    async with db.work() as sql:
        started = await documents.start_generation(
            sql, *of, expect_generation=row["generation"], announce=False, plan=plan, why=why
        )
    try:
        for key in (text_key, parsed_key):
            old = objects.stream(key(*of, source))
            await objects.write(key(*of, started["generation"]), old)
    except NotFoundError:  # a newer generation or a late writer removed it in between
        async with db.work() as sql:
            await sql.emit(uploaded_event(started), lane=lane_of(started["priority"]))
        return started
    async with db.work() as sql:
        return await _announce(sql, started, counts, background=background)


def _parse_counts(history: list[RowMapping], source: int) -> dict[str, int]:
    for event in reversed(history):
        if event["generation"] == source and event["stage"] == DocumentState.PARSED:
            return dict(event["data"].get("counts", {}))
    return {}


async def _announce(
    sql: UnitOfWork, row: RowMapping, counts: dict[str, int], *, background: bool
) -> RowMapping:
    """Make the copied generation `parsed`, unless it was superseded meanwhile."""
    of = (row["tenant"], row["id"])
    parsed = await documents.advance(
        sql,
        *of,
        row["generation"],
        expect={DocumentState.UPLOADED},
        to=DocumentState.PARSED,
        counts=counts,
    )
    after = await documents.load(sql, *of)
    event = pending_event(after) if parsed else None
    if isinstance(event, DocumentParsed):
        priority = BACKGROUND if background else event.priority
        await sql.emit(replace(event, priority=priority), lane=lane_of(priority))
    return after
