"""From chunk ids that an index found to what may be shown: SQL decides what is visible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, FromClause, RowMapping, select, tuple_

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
    domain: str
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
    parent = chunks.alias("parent")
    of_parent = [parent.c.id.label("parent_id"), *_named("parent", parent)] if parents else []
    found = documents.join(chunks, documents.c.id == chunks.c.document_id)
    if parents:
        found = found.outerjoin(parent, parent.c.id == chunks.c.parent_id)
    rows = await sql.rows(
        select(
            chunks.c.id,
            chunks.c.generation,
            chunks.c.ordinal,
            *_named("child", chunks),
            *of_parent,
            documents.c.id.label("document_id"),
            documents.c.name.label("document_name"),
            documents.c.domain,
            chunks.c.lead,
        )
        .select_from(found)
        .where(
            chunks.c.id.in_(chunk_ids),
            chunks.c.tenant == tenant,
            checked(documents.c.tenant) == tenant,
            documents.c.state != DELETED,
            documents.c.active_generation == chunks.c.generation,
        )
    )
    return {row["id"]: _visible(row, row["parent_id"] if parents else None) for row in rows}


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
            d: StoredText(
                row["id"],
                row["text"],
                row["start"],
                row["end"],
                row["page"],
                tuple(row["heading_path"]),
            )
            for d in _steps(reach)
            if (row := stored.get((c.document_id, c.generation, c.ordinal + d))) is not None
        }
        for c in found
    }


def _steps(reach: int) -> list[int]:
    return [*range(-reach, 0), *range(1, reach + 1)]


_FIELDS = ("text", "start", "end", "page", "heading_path")


def _named(prefix: str, table: FromClause) -> list[ColumnElement[Any]]:
    return [table.c[field].label(f"{prefix}_{field}") for field in _FIELDS]


def _visible(row: RowMapping, parent_id: str | None) -> VisibleChunk:
    child = _stored(row, "child", row["id"])
    parent = child if parent_id is None else _stored(row, "parent", parent_id)
    return VisibleChunk(
        child,
        parent,
        row["document_id"],
        row["document_name"],
        row["domain"],
        row["generation"],
        row["ordinal"],
        row["lead"],
    )


def _stored(row: RowMapping, prefix: str, chunk_id: str) -> StoredText:
    return StoredText(
        chunk_id,
        row[f"{prefix}_text"],
        row[f"{prefix}_start"],
        row[f"{prefix}_end"],
        row[f"{prefix}_page"],
        tuple(row[f"{prefix}_heading_path"]),
    )
