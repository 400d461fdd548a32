"""Documents in SQL: every change is a compare-and-set and leaves a row in the timeline.

All functions are confined to one tenant: another tenant's id behaves as an unknown one.
A redelivered or stale event finds its expectation unmet, changes nothing and gets False.
"""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    and_,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)

from libs.contracts import DocumentControl, DocumentDeleted, DocumentFailed
from libs.kernel import ConflictError, NotFoundError, now_us
from libs.storage.sql.document_events import URGENT, lane_of, uploaded_event
from libs.storage.sql.document_states import (
    ABANDONED,
    RUNNING,
    STARTS_FROM,
    DocumentState,
    may_follow,
    may_start_generation,
)
from libs.storage.sql.tables import document_timeline, documents, idempotency_keys
from libs.storage.sql.work import UnitOfWork

__all__ = [
    "URGENT",
    "activate",
    "advance",
    "cancel",
    "fail",
    "find",
    "is_current",
    "lane_of",
    "load",
    "note",
    "purge",
    "set_plan",
    "start_generation",
    "timeline",
    "tombstone",
    "uploaded_event",
]


async def find(
    sql: UnitOfWork, tenant: str, document_id: str, *, lock: bool = False
) -> RowMapping | None:
    """The row, tombstones included; None when unknown. `lock` holds it until the unit ends."""
    statement = select(documents).where(_is(tenant, document_id))
    return await sql.first(statement.with_for_update() if lock else statement)


async def load(sql: UnitOfWork, tenant: str, document_id: str) -> RowMapping:
    """The row of a living document. Raises: NotFoundError (unknown, foreign or deleted)."""
    row = await find(sql, tenant, document_id)
    if row is None or row["state"] == DocumentState.DELETED:
        raise NotFoundError(f"there is no document {document_id}")
    return row


async def is_current(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> bool:
    """Whether work on this generation still matters: the newest, not failed, cancelled, deleted."""
    row = await find(sql, tenant, document_id)
    return row is not None and row["generation"] == generation and row["state"] not in ABANDONED


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
    return await _change(sql, row, values, data={"counts": dict(counts)} if counts else {})


async def activate(
    sql: UnitOfWork,
    tenant: str,
    document_id: str,
    generation: int,
    counts: Mapping[str, int] | None = None,
) -> bool:
    """chunked -> indexed, and search shows this generation from here on: one step."""
    row = await find(sql, tenant, document_id, lock=True)
    if row is None or row["generation"] != generation or row["state"] != DocumentState.CHUNKED:
        return False
    merged = {**row["counts"], **(counts or {})}
    values = {
        "state": DocumentState.INDEXED,
        "active_generation": generation,
        "counts": merged,
    }
    return await _change(sql, row, values, data={"counts": merged})


async def fail(
    sql: UnitOfWork,
    tenant: str,
    document_id: str,
    generation: int,
    *,
    stage: str,
    reason: str,
    detail: str,
) -> bool:
    """End a running generation with a reason; what was searchable before stays searchable.

    `stage` is parse, chunk or index. False: that stage is not at work (any more); a repeat of it
    may fail when the first try has brought the document further.
    """
    row = await find(sql, tenant, document_id, lock=True)
    if row is None or row["generation"] != generation or row["state"] != STARTS_FROM[stage]:
        return False
    why = {"stage": stage, "reason": reason, "detail": detail}
    if not await _change(sql, row, {"state": DocumentState.FAILED, **why}, data=why):
        return False
    await sql.emit(DocumentFailed(tenant, document_id, generation, stage, reason, detail))
    return True


async def cancel(sql: UnitOfWork, tenant: str, document_id: str) -> RowMapping:
    """Stop a running generation and tell every worker. Repeating it changes nothing.

    Returns: the row afterwards. Raises: NotFoundError; ConflictError when it had ended already.
    """
    row = await _living(sql, tenant, document_id)
    if row["state"] == DocumentState.CANCELLED:
        return row
    if row["state"] not in RUNNING:
        raise ConflictError(f"the document is {row['state']} already: there is nothing to cancel")
    await _change(sql, row, {"state": DocumentState.CANCELLED})
    await sql.emit(DocumentControl(tenant, document_id, "cancel"))
    return await load(sql, tenant, document_id)


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
    """Begin a new generation at `uploaded`; the old one's work is dropped, its chunks stay
    searchable until the new one is whole.

    `announce=False` leaves the event to the caller (the reconciler sends it if he never does).

    Returns: the row afterwards. Raises: NotFoundError; ConflictError when `expect_generation` is
    not the newest any more.
    """
    row = await _living(sql, tenant, document_id)
    if expect_generation not in {None, row["generation"]}:
        raise ConflictError("the document was changed at the same time: look at it and try again")
    if not may_start_generation(row["state"]):
        raise ConflictError(f"a {row['state']} document takes no new generation")
    values: dict[str, Any] = {
        "state": DocumentState.UPLOADED,
        "generation": row["generation"] + 1,
        "counts": {},
        "stage": None,
        "reason": None,
        "detail": None,
    }
    if plan is not None:
        values["plan"] = dict(plan)
    await _change(sql, row, values, data={"why": why})
    started = await load(sql, tenant, document_id)
    if announce:
        await sql.emit(uploaded_event(started), lane=lane_of(started["priority"]))
    return started


async def tombstone(sql: UnitOfWork, tenant: str, document_id: str) -> bool:
    """Hide the document at once and announce it, so that every store drops what it holds.

    Its content may be uploaded anew from here on, as another document. False: it was a tombstone
    already. Raises: NotFoundError.
    """
    row = await find(sql, tenant, document_id, lock=True)
    if row is None:
        raise NotFoundError(f"there is no document {document_id}")
    if row["state"] == DocumentState.DELETED:
        return False
    values = {"state": DocumentState.DELETED, "content_key": None, "active_generation": None}
    await _change(sql, row, values)
    await sql.execute(delete(idempotency_keys).where(_key_of(tenant, document_id)))
    await sql.emit(DocumentDeleted(tenant, document_id))
    await sql.emit(DocumentControl(tenant, document_id, "cancel"))
    return True


async def purge(sql: UnitOfWork, tenant: str, document_id: str) -> bool:
    """Drop a tombstone: the last step of a deletion, once every store has dropped its part."""
    gone = await sql.compare_and_set(
        delete(documents).where(
            _is(tenant, document_id), documents.c.state == DocumentState.DELETED
        )
    )
    if gone:
        await sql.execute(
            delete(document_timeline).where(document_timeline.c.document_id == document_id)
        )
    return gone


async def timeline(
    sql: UnitOfWork, tenant: str, document_id: str, *, after_seq: int = 0
) -> list[RowMapping]:
    """What happened to the document, oldest first, from `after_seq` (exclusive) on."""
    return await sql.rows(
        select(document_timeline)
        .join(documents, documents.c.id == document_timeline.c.document_id)
        .where(_is(tenant, document_id), document_timeline.c.seq > after_seq)
        .order_by(document_timeline.c.seq)
    )


async def set_plan(
    sql: UnitOfWork, tenant: str, document_id: str, generation: int, plan: Mapping[str, Any]
) -> RowMapping:
    """Set the plan of a generation that waits for its parse. Raises: as `start_generation`."""
    row = await _living(sql, tenant, document_id)
    if row["generation"] != generation or row["state"] != DocumentState.UPLOADED:
        raise ConflictError("the document was changed at the same time: look at it and try again")
    await sql.execute(
        update(documents)
        .where(_is(tenant, document_id))
        .values(plan=dict(plan), updated_at=now_us())
    )
    return await load(sql, tenant, document_id)


async def note(
    sql: UnitOfWork, document_id: str, generation: int, stage: str, data: Mapping[str, Any]
) -> None:
    """Append to the timeline. The document's row is locked by the caller, so seqs have no gaps."""
    seq = select(
        literal(document_id),
        func.coalesce(func.max(document_timeline.c.seq), 0) + 1,
        literal(generation),
        literal(stage),
        literal(dict(data), document_timeline.c.data.type),
        literal(now_us()),
    ).where(document_timeline.c.document_id == document_id)
    columns = ["document_id", "seq", "generation", "stage", "data", "at"]
    await sql.execute(insert(document_timeline).from_select(columns, seq))


async def _living(sql: UnitOfWork, tenant: str, document_id: str) -> RowMapping:
    row = await find(sql, tenant, document_id, lock=True)
    if row is None or row["state"] == DocumentState.DELETED:
        raise NotFoundError(f"there is no document {document_id}")
    return row


async def _change(
    sql: UnitOfWork,
    row: RowMapping,
    values: Mapping[str, Any],
    *,
    data: Mapping[str, Any] | None = None,
) -> bool:
    """Set `values` if the row is still in the state and generation it was read in."""
    changed = await sql.compare_and_set(
        update(documents)
        .where(
            _is(row["tenant"], row["id"]),
            documents.c.generation == row["generation"],
            documents.c.state == row["state"],
        )
        .values(**values, updated_at=now_us())
    )
    if changed:
        generation = values.get("generation", row["generation"])
        await note(sql, row["id"], generation, values["state"], data or {})
    return changed


def _is(tenant: str, document_id: str) -> ColumnElement[bool]:
    return and_(documents.c.id == document_id, documents.c.tenant == tenant)


def _key_of(tenant: str, document_id: str) -> ColumnElement[bool]:
    return and_(idempotency_keys.c.tenant == tenant, idempotency_keys.c.document_id == document_id)
