"""From chunk ids that an index found to what may be shown: SQL decides what is visible."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Row,
    RowMapping,
    Select,
    bindparam,
    select,
    tuple_,
)

from libs.storage.sql.tables import checked, chunks, documents
from libs.storage.sql.work import UnitOfWork

DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class StoredText:
    """A chunk as stored; offsets are code points into the document's text."""

    chunk_id: str
    text: str
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VisibleChunk:
    """A child chunk of the active generation of a living document, with its parent."""

    child: StoredText
    parent: StoredText  # the child itself where it has none
    document_id: str
    document_name: str
    generation: int
    ordinal: int  # of the child among the children of its generation
    lead: str  # how the document begins; empty for its first chunk


async def hydrate(
    sql: UnitOfWork, tenant: str, chunk_ids: Sequence[str], *, parents: bool = True
) -> dict[str, VisibleChunk]:
    """The visible ones among `chunk_ids`, by id; without their parents if nobody reads them.

    Left out: chunks of other tenants, of deleted documents, and of every generation but the
    active one; so what a store has not dropped yet is never shown.
    """
    if not chunk_ids:
        return {}
    found = await sql.execute(
        _visible_ones(parents), {"chunk_ids": list(chunk_ids), "tenant": tenant}
    )
    return {row[0]: _visible(row) for row in found}


@cache  # a search waits for this one: building it takes as long as it runs
def _visible_ones(parents: bool) -> Select[Any]:
    parent = chunks.alias("parent")
    found = documents.join(chunks, documents.c.id == chunks.c.document_id)
    if parents:
        found = found.outerjoin(parent, parent.c.id == chunks.c.parent_id)
    asked_by = bindparam("tenant", type_=chunks.c.tenant.type)
    return (
        select(
            *_stored_columns(chunks),
            documents.c.id,
            documents.c.name,
            chunks.c.generation,
            chunks.c.ordinal,
            chunks.c.lead,
            *(_stored_columns(parent) if parents else ()),
        )
        .select_from(found)
        .where(
            chunks.c.id.in_(bindparam("chunk_ids", expanding=True)),
            chunks.c.tenant == asked_by,
            checked(documents.c.tenant) == asked_by,
            documents.c.state != DELETED,
            documents.c.active_generation == chunks.c.generation,
        )
    )


async def why_hidden(sql: UnitOfWork, tenant: str, chunk_ids: Sequence[str]) -> dict[str, str]:
    """For ids that `hydrate` left out: `foreign`, `deleted`, `stale` or `unknown` to SQL."""
    rows = await sql.rows(
        select(chunks.c.id, chunks.c.tenant, documents.c.state)
        .outerjoin(documents, documents.c.id == chunks.c.document_id)
        .where(chunks.c.id.in_(chunk_ids))
    )
    known = {row["id"]: _reason(row, tenant) for row in rows}
    return {chunk_id: known.get(chunk_id, "unknown") for chunk_id in chunk_ids}


def _reason(row: RowMapping, tenant: str) -> str:
    if row["tenant"] != tenant:
        return "foreign"
    return "deleted" if row["state"] in (None, DELETED) else "stale"


async def around(
    sql: UnitOfWork, tenant: str, found: Sequence[VisibleChunk], reach: int
) -> dict[str, dict[int, StoredText]]:
    """The chunks up to `reach` before and after each, by its id and their distance (-1, 1, …)."""
    places = {(c.document_id, c.generation, c.ordinal + d) for c in found for d in _steps(reach)}
    if not places:
        return {}
    rows = await sql.rows(
        select(chunks).where(
            chunks.c.tenant == tenant,
            chunks.c.parent_id.is_not(None),
            tuple_(chunks.c.document_id, chunks.c.generation, chunks.c.ordinal).in_(sorted(places)),
        )
    )
    stored = {(row["document_id"], row["generation"], row["ordinal"]): row for row in rows}
    return {
        c.child.chunk_id: {
            d: _stored(*(row[field] for field in _FIELDS))
            for d in _steps(reach)
            if (row := stored.get((c.document_id, c.generation, c.ordinal + d))) is not None
        }
        for c in found
    }


def _steps(reach: int) -> list[int]:
    return [*range(-reach, 0), *range(1, reach + 1)]


_FIELDS = ("id", "text", "start", "end", "page", "heading_path")  # in the order of `StoredText`


def _stored_columns(table: FromClause) -> list[ColumnElement[Any]]:
    return [table.c[field] for field in _FIELDS]


def _visible(row: Row[Any]) -> VisibleChunk:
    child: Any = row[:6]
    told: Any = row[6:11]
    parent: Any = row[11:]
    stored = _stored(*child)
    return VisibleChunk(stored, _stored(*parent) if parent and parent[0] else stored, *told)


def _stored(
    chunk_id: str, text: str, start: int, end: int, page: int | None, headings: Sequence[str]
) -> StoredText:
    return StoredText(chunk_id, text, start, end, page, tuple(headings))
