"""A document's row and its timeline: what every change of a document is made of.

All functions are confined to one tenant: another tenant's id behaves as an unknown one.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, func, insert, literal, select, update

from libs.kernel import NotFoundError, now_us
from libs.observability.metrics import DOCUMENTS
from libs.storage.sql.document_states import DocumentState
from libs.storage.sql.tables import document_timeline, documents
from libs.storage.sql.work import UnitOfWork


async def find(
    sql: UnitOfWork, tenant: str, document_id: str, *, lock: bool = False
) -> RowMapping | None:
    """The row, tombstones included; None when unknown. `lock` holds it until the unit ends."""
    statement = select(documents).where(is_document(tenant, document_id))
    return await sql.first(statement.with_for_update() if lock else statement)


async def load(sql: UnitOfWork, tenant: str, document_id: str, *, lock: bool = False) -> RowMapping:
    """The row of a living document. Raises: NotFoundError (unknown, foreign or deleted)."""
    row = await find(sql, tenant, document_id, lock=lock)
    if row is None or row["state"] == DocumentState.DELETED:
        raise NotFoundError(f"there is no document {document_id}")
    return row


async def change(
    sql: UnitOfWork,
    row: RowMapping,
    values: Mapping[str, Any],
    *,
    data: Mapping[str, Any] | None = None,
) -> bool:
    """Set `values`, the state among them, if the row is still in the state and generation it was
    read in, and note it in the timeline with `data`.
    """
    changed = await sql.compare_and_set(
        update(documents)
        .where(
            is_document(row["tenant"], row["id"]),
            documents.c.generation == row["generation"],
            documents.c.state == row["state"],
        )
        .values(**values, updated_at=now_us())
    )
    if changed:
        generation = values.get("generation", row["generation"])
        await note(sql, row["id"], generation, values["state"], data or {})
    return changed


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
    sql.when_committed.append(DOCUMENTS.labels(stage).inc)


async def timeline(
    sql: UnitOfWork, tenant: str, document_id: str, *, after_seq: int = 0
) -> list[RowMapping]:
    """What happened to the document, oldest first, from `after_seq` (exclusive) on."""
    return await sql.rows(
        select(document_timeline)
        .join(documents, documents.c.id == document_timeline.c.document_id)
        .where(is_document(tenant, document_id), document_timeline.c.seq > after_seq)
        .order_by(document_timeline.c.seq)
    )


def is_document(tenant: str, document_id: str) -> ColumnElement[bool]:
    return and_(documents.c.id == document_id, documents.c.tenant == tenant)
