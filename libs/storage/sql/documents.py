"""Documents in SQL: every change is a compare-and-set and leaves a row in the timeline.

All functions are confined to one tenant: another tenant's id behaves as an unknown one.
A redelivered or stale event finds its expectation unmet, changes nothing and gets False.
"""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import RowMapping, update

from libs.kernel import ConflictError, now_us
from libs.storage.sql import enrichments
from libs.storage.sql.document_ends import cancel, fail, purge, tombstone
from libs.storage.sql.document_events import URGENT, lane_of, uploaded_event
from libs.storage.sql.document_rows import change, find, is_document, load, note, timeline
from libs.storage.sql.document_starts import resume, start_generation
from libs.storage.sql.document_states import DocumentState, may_follow
from libs.storage.sql.tables import documents
from libs.storage.sql.work import UnitOfWork

__all__ = [
    "URGENT",
    "activate",
    "advance",
    "cancel",
    "fail",
    "find",
    "lane_of",
    "load",
    "note",
    "purge",
    "resume",
    "set_plan",
    "start_generation",
    "timeline",
    "tombstone",
    "uploaded_event",
]


async def advance(
    sql: UnitOfWork,
    tenant: str,
    document_id: str,
    generation: int,
    *,
    expect: Collection[str],
    to: str,
    counts: Mapping[str, int] | None = None,
    media_type: str | None = None,
    plan: Mapping[str, Any] | None = None,
) -> bool:
    """Move the newest generation from one of `expect` to `to`; False: it is not there (any more).

    `counts` are merged into the document's; `media_type` (what the parser detected) and `plan`
    (what the chunker used) replace the stored ones.

    Raises: ValueError when the rules know no such step.
    """
    illegal = [state for state in expect if not may_follow(state, to)]
    if illegal:
        raise ValueError(f"a document never goes from {illegal} to {to}")
    row = await find(sql, tenant, document_id, lock=True)
    if row is None or row["generation"] != generation or row["state"] not in expect:
        return False
    values: dict[str, Any] = {"state": to, "counts": {**row["counts"], **(counts or {})}}
    if media_type is not None:
        values["media_type"] = media_type
    if plan is not None:
        values["plan"] = dict(plan)
    return await change(sql, row, values, data={"counts": dict(counts)} if counts else {})


async def activate(
    sql: UnitOfWork,
    tenant: str,
    document_id: str,
    generation: int,
    counts: Mapping[str, int] | None = None,
    *,
    unchanged_since: int | None = None,
) -> bool:
    """chunked -> indexed, and search shows this generation from here on: one step.

    `unchanged_since` is the row's `updated_at` when the chunks were read: whatever was written of
    a row that changed since may not be what its chunks are now.
    """
    row = await find(sql, tenant, document_id, lock=True)
    if row is None or row["generation"] != generation or row["state"] != DocumentState.CHUNKED:
        return False
    if unchanged_since not in {None, row["updated_at"]}:
        return False
    merged = {**row["counts"], **(counts or {})}
    values = {
        "state": DocumentState.INDEXED,
        "active_generation": generation,
        "counts": merged,
        "active_counts": merged,
    }
    if not await change(sql, row, values, data={"counts": merged}):
        return False
    await enrichments.begin(sql, tenant, document_id, generation)
    return True


async def set_plan(
    sql: UnitOfWork, tenant: str, document_id: str, generation: int, plan: Mapping[str, Any]
) -> RowMapping:
    """Set the plan of a generation that waits for its parse. Raises: as `start_generation`."""
    row = await load(sql, tenant, document_id, lock=True)
    if row["generation"] != generation or row["state"] != DocumentState.UPLOADED:
        raise ConflictError("the document was changed at the same time: look at it and try again")
    await sql.execute(
        update(documents)
        .where(is_document(tenant, document_id))
        .values(plan=dict(plan), updated_at=now_us())
    )
    return await load(sql, tenant, document_id)
