"""Chunks in SQL: the text of children and parents, by document and generation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, delete, func, insert, select

from libs.documents.model import Chunk
from libs.storage.sql.tables import chunks
from libs.storage.sql.work import UnitOfWork

BATCH = 500
COUNTED = ("parents", "chunks")  # in a document's counts


async def clear(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> int:
    """Drop a generation's chunks; returns how many there were."""
    return await sql.affected(delete(chunks).where(_of(tenant, document_id, generation)))


async def add(
    sql: UnitOfWork, tenant: str, document_id: str, generation: int, new: Sequence[Chunk]
) -> None:
    """Add chunks, over rows that have the same ids: large documents come in several units."""
    for at in range(0, len(new), BATCH):
        batch = new[at : at + BATCH]
        same = chunks.c.id.in_([chunk.chunk_id for chunk in batch])
        await sql.execute(delete(chunks).where(_of(tenant, document_id, generation), same))
        await sql.execute(
            insert(chunks), [_values(tenant, document_id, generation, chunk) for chunk in batch]
        )


async def children(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> list[Chunk]:
    """The children of a generation in reading order."""
    is_child = chunks.c.parent_id.is_not(None)
    return await _chunks(sql, _of(tenant, document_id, generation), is_child)


async def parents(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> list[Chunk]:
    """The parents of a generation in reading order."""
    return await _chunks(sql, _of(tenant, document_id, generation), chunks.c.parent_id.is_(None))


async def count(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> int:
    """How many children and parents a generation has."""
    statement = select(func.count()).where(_of(tenant, document_id, generation))
    return int(await sql.scalar(statement))


async def extent(
    sql: UnitOfWork, tenant: str, document_id: str, generation: int
) -> tuple[int, int, int]:
    """How many children and parents a generation has, and the sums of their starts and ends.

    Tells a set from one that another cut was mixed into, as `extent_of` what it should be.
    """
    starts, ends = func.sum(chunks.c.start), func.sum(chunks.c.end)
    statement = select(func.count().label("count"), starts.label("starts"), ends.label("ends"))
    [row] = await sql.rows(statement.where(_of(tenant, document_id, generation)))
    return int(row["count"]), int(row["starts"] or 0), int(row["ends"] or 0)


def extent_of(made: Sequence[Chunk]) -> tuple[int, int, int]:
    """What `extent` says of exactly these chunks."""
    return len(made), sum(chunk.start for chunk in made), sum(chunk.end for chunk in made)


async def are_whole(sql: UnitOfWork, document: RowMapping) -> bool:
    """Whether every chunk that the document's row counts for its newest generation is there."""
    counted = [document["counts"].get(kind, 0) for kind in COUNTED]
    stored = await count(sql, document["tenant"], document["id"], document["generation"])
    return stored == sum(counted) and all(counted)


def uncounted(counts: Mapping[str, int]) -> dict[str, int]:
    """A document's counts without those of chunks: the generation has none (any more)."""
    return {kind: number for kind, number in counts.items() if kind not in COUNTED}


async def generations(sql: UnitOfWork, tenant: str, document_id: str) -> dict[int, int]:
    """How many chunks, children and parents, each generation of a document has."""
    rows = await sql.rows(
        select(chunks.c.generation, func.count().label("count"))
        .where(chunks.c.tenant == tenant, chunks.c.document_id == document_id)
        .group_by(chunks.c.generation)
    )
    return {row["generation"]: row["count"] for row in rows}


async def child_ids(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> set[str]:
    """The ids of a generation's children."""
    is_child = chunks.c.parent_id.is_not(None)
    rows = await sql.rows(select(chunks.c.id).where(_of(tenant, document_id, generation), is_child))
    return {row["id"] for row in rows}


async def delete_document(
    sql: UnitOfWork, tenant: str, document_id: str, *, keep: Iterable[int] = ()
) -> int:
    """Drop the chunks of every generation but those to keep; returns how many there were."""
    of_document = and_(chunks.c.tenant == tenant, chunks.c.document_id == document_id)
    dropped = chunks.c.generation.not_in(list(keep))
    return await sql.affected(delete(chunks).where(of_document, dropped))


async def _chunks(sql: UnitOfWork, *conditions: ColumnElement[bool]) -> list[Chunk]:
    rows = await sql.rows(select(chunks).where(*conditions).order_by(chunks.c.ordinal))
    return [to_chunk(row) for row in rows]


def to_chunk(row: RowMapping) -> Chunk:
    """A row of the table as a chunk."""
    return Chunk(
        chunk_id=row["id"],
        ordinal=row["ordinal"],
        text=row["text"],
        start=row["start"],
        end=row["end"],
        page=row["page"],
        heading_path=tuple(row["heading_path"]),
        parent_id=row["parent_id"],
        lead=row["lead"],
    )


def _values(tenant: str, document_id: str, generation: int, chunk: Chunk) -> dict[str, Any]:
    return {
        "id": chunk.chunk_id,
        "tenant": tenant,
        "document_id": document_id,
        "generation": generation,
        "ordinal": chunk.ordinal,
        "parent_id": chunk.parent_id,
        "text": chunk.text,
        "start": chunk.start,
        "end": chunk.end,
        "page": chunk.page,
        "heading_path": list(chunk.heading_path),
        "lead": chunk.lead,
    }


def _of(tenant: str, document_id: str, generation: int) -> ColumnElement[bool]:
    return and_(
        chunks.c.tenant == tenant,
        chunks.c.document_id == document_id,
        chunks.c.generation == generation,
    )
