"""Pages of rows for clients."""

from sqlalchemy import RowMapping, and_, or_, select

from libs.storage.sql.document_states import DocumentState
from libs.storage.sql.tables import chunks, documents
from libs.storage.sql.work import UnitOfWork


async def documents_page(
    sql: UnitOfWork,
    tenant: str,
    *,
    before: tuple[int, str] | None = None,
    state: str | None = None,
    domain: str | None = None,
    limit: int = 50,
) -> list[RowMapping]:
    """Living documents, newest first; `before` is the (created_at, id) of the last one seen."""
    at, id_ = documents.c.created_at, documents.c.id
    conditions = [documents.c.tenant == tenant, documents.c.state != DocumentState.DELETED]
    if state is not None:
        conditions.append(documents.c.state == state)
    if domain is not None:
        conditions.append(documents.c.domain == domain)
    if before is not None:
        conditions.append(or_(at < before[0], and_(at == before[0], id_ < before[1])))
    statement = select(documents).where(*conditions).order_by(at.desc(), id_.desc())
    return await sql.rows(statement.limit(limit))


async def chunks_page(
    sql: UnitOfWork,
    tenant: str,
    document_id: str,
    generation: int,
    *,
    parents: bool,
    after: int,
    limit: int,
) -> list[RowMapping]:
    """A generation's children, or its parents, in reading order from `after` (exclusive) on."""
    wanted = chunks.c.parent_id.is_(None) if parents else chunks.c.parent_id.is_not(None)
    return await sql.rows(
        select(chunks)
        .where(
            chunks.c.tenant == tenant,
            chunks.c.document_id == document_id,
            chunks.c.generation == generation,
            chunks.c.ordinal > after,
            wanted,
        )
        .order_by(chunks.c.ordinal)
        .limit(limit)
    )
