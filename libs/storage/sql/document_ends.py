"""How documents end: failed, cancelled, deleted. A repeat changes nothing."""

from sqlalchemy import RowMapping, delete

from libs.contracts import DocumentControl, DocumentDeleted, DocumentFailed
from libs.kernel import ConflictError, NotFoundError
from libs.observability.metrics import DOCUMENT_FAILURES
from libs.storage.sql import alike, chunks
from libs.storage.sql.document_rows import change, find, is_document, load
from libs.storage.sql.document_states import RUNNING, STARTS_FROM, DocumentState
from libs.storage.sql.tables import document_timeline, documents, idempotency_keys
from libs.storage.sql.work import UnitOfWork


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
    if not await change(sql, row, {"state": DocumentState.FAILED, **why}, data=why):
        return False
    if stage == "chunk":  # a set that was cut off in the middle; a whole one waits to be resumed
        await chunks.clear(sql, tenant, document_id, generation)
    await sql.emit(DocumentFailed(tenant, document_id, generation, stage, reason, detail))
    sql.when_committed.append(DOCUMENT_FAILURES.labels(stage, reason).inc)
    return True


async def cancel(sql: UnitOfWork, tenant: str, document_id: str) -> RowMapping:
    """Stop a running generation and tell every worker. Repeating it changes nothing.

    Returns: the row afterwards. Raises: NotFoundError; ConflictError when it had ended already.
    """
    row = await load(sql, tenant, document_id, lock=True)
    if row["state"] == DocumentState.CANCELLED:
        return row
    if row["state"] not in RUNNING:
        raise ConflictError(f"the document is {row['state']} already: there is nothing to cancel")
    counts = chunks.uncounted(row["counts"])
    await change(sql, row, {"state": DocumentState.CANCELLED, "counts": counts})
    await chunks.clear(sql, tenant, document_id, row["generation"])
    await sql.emit(DocumentControl(tenant, document_id, "cancel"))
    return await load(sql, tenant, document_id)


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
    hidden = {"content_key": None, "active_generation": None, "active_counts": None}
    values = {"state": DocumentState.DELETED, **hidden}
    await change(sql, row, values)
    await sql.execute(
        delete(idempotency_keys).where(
            idempotency_keys.c.tenant == tenant, idempotency_keys.c.entity_id == document_id
        )
    )
    await sql.emit(DocumentDeleted(tenant, document_id))
    await sql.emit(DocumentControl(tenant, document_id, "cancel"))
    return True


async def purge(sql: UnitOfWork, tenant: str, document_id: str) -> bool:
    """Drop a tombstone: the last step of a deletion, once every store has dropped its part."""
    gone = await sql.compare_and_set(
        delete(documents).where(
            is_document(tenant, document_id), documents.c.state == DocumentState.DELETED
        )
    )
    if gone:
        await alike.forget(sql, document_id)
        await sql.execute(
            delete(document_timeline).where(document_timeline.c.document_id == document_id)
        )
    return gone
