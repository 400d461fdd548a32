"""Many rows at once: pages for clients, sweeps and the reconciler."""

from collections.abc import Collection

from sqlalchemy import RowMapping, Table, and_, or_, select, union

from libs.storage.sql.document_states import DocumentState
from libs.storage.sql.tables import api_keys, checked, chunks, documents, graph_entities, turns
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


async def documents_in(
    sql: UnitOfWork, states: Collection[str], *, after: str, limit: int
) -> list[RowMapping]:
    """Documents of every tenant in these states, by ascending id from `after` (exclusive) on."""
    return await sql.rows(
        select(documents)
        .where(documents.c.state.in_(states), documents.c.id > after)
        .order_by(documents.c.id)
        .limit(limit)
    )


async def documents_by_id(
    sql: UnitOfWork, tenant: str, ids: Collection[str]
) -> dict[str, RowMapping]:
    """The rows, tombstones included, of those ids that the tenant has."""
    found = await sql.rows(
        select(documents).where(checked(documents.c.tenant) == tenant, documents.c.id.in_(ids))
    )
    return {row["id"]: row for row in found}


async def owners(
    sql: UnitOfWork, *, tenant: str | None = None, after: str, limit: int
) -> list[tuple[str, str]]:
    """(tenant, id) of documents, tombstones too, by ascending id from `after` (exclusive) on."""
    found = select(documents.c.tenant, documents.c.id).where(documents.c.id > after)
    if tenant is not None:
        found = found.where(documents.c.tenant == tenant)
    rows = await sql.rows(found.order_by(documents.c.id).limit(limit))
    return [(row["tenant"], row["id"]) for row in rows]


async def chunk_owners(
    sql: UnitOfWork, *, tenant: str | None = None, after: str, limit: int
) -> list[tuple[str, str]]:
    """(tenant, document id) of stored chunks, by ascending document id after `after`."""
    return await _owners_in(sql, chunks, tenant, after, limit)


async def graph_owners(
    sql: UnitOfWork, *, tenant: str | None = None, after: str, limit: int
) -> list[tuple[str, str]]:
    """As `chunk_owners`, of what the graph holds."""
    return await _owners_in(sql, graph_entities, tenant, after, limit)


async def _owners_in(
    sql: UnitOfWork, table: Table, tenant: str | None, after: str, limit: int
) -> list[tuple[str, str]]:
    found = select(table.c.tenant, table.c.document_id).where(table.c.document_id > after)
    if tenant is not None:
        found = found.where(table.c.tenant == tenant)
    found = found.distinct().order_by(table.c.document_id).limit(limit)
    return [(row["tenant"], row["document_id"]) for row in await sql.rows(found)]


async def tenants(sql: UnitOfWork) -> list[str]:
    """Every tenant that has, or had, a key or has a document."""
    known = union(select(api_keys.c.tenant), select(documents.c.tenant))
    return sorted(row["tenant"] for row in await sql.rows(known))


async def unmoved_documents(
    sql: UnitOfWork,
    tenant: str,
    states: Collection[str],
    *,
    before_us: int,
    limit: int,
    after: tuple[int, str] | None = None,
) -> list[RowMapping]:
    """A tenant's documents in these states that did not change since a time, oldest first.

    `after` is the (updated_at, id) of the last one seen.
    """
    at, id_ = documents.c.updated_at, documents.c.id
    conditions = [documents.c.tenant == tenant, documents.c.state.in_(states), at <= before_us]
    if after is not None:
        conditions.append(or_(at > after[0], and_(at == after[0], id_ > after[1])))
    return await sql.rows(select(documents).where(*conditions).order_by(at, id_).limit(limit))


async def unmoved_turns(
    sql: UnitOfWork, tenant: str, states: Collection[str], *, before_us: int, limit: int
) -> list[RowMapping]:
    """As `unmoved_documents`."""
    return await sql.rows(
        select(turns)
        .where(turns.c.tenant == tenant, turns.c.state.in_(states), turns.c.updated_at <= before_us)
        .order_by(turns.c.updated_at, turns.c.id)
        .limit(limit)
    )
