"""How documents start anew: as a new generation, or where a stage failed."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import RowMapping

from libs.contracts import DocumentControl
from libs.kernel import ConflictError
from libs.storage.sql import chunks
from libs.storage.sql.document_events import lane_of, pending_event, uploaded_event
from libs.storage.sql.document_rows import change, load
from libs.storage.sql.document_states import (
    MISSING_PARSE,
    RUNNING,
    DocumentState,
)
from libs.storage.sql.work import UnitOfWork

_NO_FAILURE = {"stage": None, "reason": None, "detail": None}


async def start_generation(
    sql: UnitOfWork,
    tenant: str,
    document_id: str,
    *,
    expect_generation: int | None = None,
    announce: bool = True,
    plan: Mapping[str, Any] | None = None,
    why: str = "reparse",
) -> RowMapping:
    """Begin a new generation at `uploaded`; the old one's work is dropped, what search shows stays
    until the new one is whole.

    `announce=False` leaves the event to the caller (the reconciler sends it if he never does).

    Returns: the row afterwards. Raises: NotFoundError; ConflictError when `expect_generation` is
    not the newest any more.
    """
    row = await load(sql, tenant, document_id, lock=True)
    if expect_generation not in {None, row["generation"]}:
        raise ConflictError("the document was changed at the same time: look at it and try again")
    values: dict[str, Any] = {
        "state": DocumentState.UPLOADED,
        "generation": row["generation"] + 1,
        "counts": {},
        **_NO_FAILURE,
    }
    if plan is not None:
        values["plan"] = dict(plan)
    await change(sql, row, values, data={"why": why})
    shown = row["active_generation"]
    await chunks.delete_document(sql, tenant, document_id, keep=[] if shown is None else [shown])
    started = await load(sql, tenant, document_id)
    if row["state"] in RUNNING:
        await sql.emit(DocumentControl(tenant, document_id, "overtaken"))
    if announce:
        await sql.emit(uploaded_event(started), lane=lane_of(started["priority"]))
    return started


async def resume(
    sql: UnitOfWork, tenant: str, document_id: str, *, parse_is_stored: bool = True
) -> RowMapping:
    """Let a failed document go on at the stage that failed, in the same generation.

    It goes back one stage when that stage's input is gone. When nothing but the file is left, and
    when the document was cancelled, it is parsed anew as a new generation.

    Args:
        parse_is_stored: Whether the object store holds the generation's parse. Whoever does not
            know says so: the chunker reports a missing one, and the next resume goes by that.

    Returns: the row afterwards. Raises: NotFoundError; ConflictError: there is nothing to resume.
    """
    row = await load(sql, tenant, document_id, lock=True)
    if row["state"] not in {DocumentState.FAILED, DocumentState.CANCELLED}:
        standing = "already at work" if row["state"] in RUNNING else row["state"]
        raise ConflictError(f"the document is {standing}: there is nothing to resume")
    to = await _resumes_from(sql, row, parse_is_stored=parse_is_stored)
    if to is None:
        return await start_generation(sql, tenant, document_id, why="resumed")
    counts = row["counts"] if to is DocumentState.CHUNKED else chunks.uncounted(row["counts"])
    values = {"state": to, "counts": counts, **_NO_FAILURE}
    await change(sql, row, values, data={"why": "resumed"})
    resumed = await load(sql, tenant, document_id)
    event = pending_event(resumed)
    if event is not None:
        await sql.emit(event, lane=lane_of(resumed["priority"]))
    return resumed


async def _resumes_from(
    sql: UnitOfWork, row: RowMapping, *, parse_is_stored: bool
) -> DocumentState | None:
    """The state from which the generation goes on; None: nothing of it can be used."""
    if row["state"] == DocumentState.CANCELLED:
        return None
    if row["stage"] == "parse":
        return DocumentState.UPLOADED
    if row["stage"] == "index" and await chunks.are_whole(sql, row):
        return DocumentState.CHUNKED
    usable = parse_is_stored and row["reason"] != MISSING_PARSE
    return DocumentState.PARSED if usable else None
