"""Cutting a document anew by another chunk plan, without parsing it again."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import RowMapping

from libs.kernel import NotFoundError
from libs.storage.keys import parsed_key, text_key
from libs.storage.sql import UnitOfWork, documents
from libs.storage.sql.document_events import lane_of, pending_event, uploaded_event
from libs.storage.sql.document_states import DocumentState
from services.ingest.api.deps import Ingest
from services.ingest.api.parses import is_stored


async def override(
    ingest: Ingest, tenant: str, document_id: str, plan: Mapping[str, Any]
) -> RowMapping:
    """Use `plan` for the document: a new generation from its newest stored parse.

    A document that waits for its parse, or has none, is (to be) parsed first. The new generation
    starts as `uploaded` and its files are copied before it becomes `parsed`: whoever dies in
    between leaves a generation that the reconciler has parsed in full.

    Returns: the row afterwards. Raises: NotFoundError, ConflictError, TransientError.
    """
    async with ingest.db.reading() as sql:
        row = await documents.load(sql, tenant, document_id)
        history = await documents.timeline(sql, tenant, document_id)
    if row["state"] == DocumentState.UPLOADED:
        async with ingest.db.work() as sql:
            return await documents.set_plan(sql, tenant, document_id, row["generation"], plan)
    source = await newest_parse(ingest, row)
    async with ingest.db.work() as sql:
        started = await documents.start_generation(
            sql,
            tenant,
            document_id,
            expect_generation=row["generation"],
            announce=source is None,
            plan=plan,
            why="new plan",
        )
    if source is None:
        return started
    try:
        await _copy_parse(ingest, started, source)
    except NotFoundError:  # a newer generation or a late writer removed it in between
        async with ingest.db.work() as sql:
            await sql.emit(uploaded_event(started), lane=lane_of(started["priority"]))
        return started
    async with ingest.db.work() as sql:
        return await _announce(sql, started, _parse_counts(history, source))


async def newest_parse(ingest: Ingest, row: RowMapping) -> int | None:
    """The generation whose parse can be cut again; None: no stored parse is whole."""
    of = (row["tenant"], row["id"])
    for generation in (row["generation"], row["active_generation"]):
        if generation is None:
            continue
        if await is_stored(ingest.objects, (*of, generation)):
            return int(generation)
    return None


async def _copy_parse(ingest: Ingest, row: RowMapping, source: int) -> None:
    of = (row["tenant"], row["id"])
    for key in (text_key, parsed_key):
        old = ingest.objects.stream(key(*of, source))
        await ingest.objects.write(key(*of, row["generation"]), old)


def _parse_counts(history: list[RowMapping], source: int) -> dict[str, int]:
    for event in reversed(history):
        if event["generation"] == source and event["stage"] == DocumentState.PARSED:
            return dict(event["data"].get("counts", {}))
    return {}


async def _announce(sql: UnitOfWork, row: RowMapping, counts: dict[str, int]) -> RowMapping:
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
    if event is not None:
        await sql.emit(event, lane=lane_of(after["priority"]))
    return after
