"""The graph in SQL: names in chunks, and relations with the chunk that proves them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Table, delete, func, insert, select, union_all

from libs.documents.graph import Condition, Interval
from libs.storage.sql.document_states import DocumentState
from libs.storage.sql.tables import (
    checked,
    documents,
    graph_ends,
    graph_entities,
    graph_relations,
)
from libs.storage.sql.work import UnitOfWork

TABLES = (graph_ends, graph_relations, graph_entities)
MAX_ROWS_PER_NAME = 1_000  # that a traversal looks at; the newest documents come first
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Entity:
    """A name's first mention in a chunk; offsets are code points into the document's text."""

    name: str
    start: int
    end: int
    source: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A relation; offsets as everywhere. `subjects` and `objects` are names."""

    verb: str
    subjects: Sequence[str]
    objects: Sequence[str]
    conditions: Sequence[Condition]
    start: int
    end: int
    source: str


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A visible relation with the chunk that proves it."""

    chunk_id: str
    document_id: str
    generation: int
    verb: str
    subjects: Sequence[str]
    objects: Sequence[str]
    conditions: Sequence[Condition]


async def write(
    sql: UnitOfWork,
    tenant: str,
    document_id: str,
    generation: int,
    found: Mapping[str, tuple[Sequence[Entity], Sequence[Fact]]],
) -> None:
    """Make these the facts of the chunks, by chunk id; what they had before is gone."""
    of = {"tenant": tenant, "document_id": document_id, "generation": generation}
    for table in TABLES:
        await sql.execute(
            delete(table).where(
                checked(table.c.tenant) == tenant, table.c.chunk_id.in_(list(found))
            )
        )
    rows: dict[Table, list[dict[str, Any]]] = {table: [] for table in TABLES}
    for chunk_id, (entities, facts) in found.items():
        at = {**of, "chunk_id": chunk_id}
        rows[graph_entities] += [
            {**at, "name": e.name, "start": e.start, "end": e.end, "source": e.source}
            for e in entities
        ]
        for seq, fact in enumerate(facts):
            rows[graph_relations].append({**at, "seq": seq, **_values(fact)})
            rows[graph_ends] += [
                {**at, "seq": seq, "name": name}
                for name in dict.fromkeys((*fact.subjects, *fact.objects))
            ]
    for table, new in rows.items():
        for start in range(0, len(new), _BATCH):
            await sql.execute(insert(table), new[start : start + _BATCH])


async def facts_about(
    sql: UnitOfWork, tenant: str, names: Iterable[str], *, domains: Sequence[str], limit: int
) -> list[StoredFact]:
    """Visible relations that have one of `names` at an end; those with most of them first."""
    near = union_all(
        *(
            select(
                select(graph_ends.c.chunk_id, graph_ends.c.seq)
                .where(graph_ends.c.tenant == tenant, graph_ends.c.name == name)
                .order_by(graph_ends.c.chunk_id.desc(), graph_ends.c.seq.desc())
                .limit(MAX_ROWS_PER_NAME)
                .subquery()
            )
            for name in names
        )
    ).subquery()
    best = (
        select(near.c.chunk_id, near.c.seq, func.count().label("matched"))
        .group_by(near.c.chunk_id, near.c.seq)
        .subquery()
    )
    statement = (
        select(graph_relations)
        .join(
            best,
            (best.c.chunk_id == graph_relations.c.chunk_id) & (best.c.seq == graph_relations.c.seq),
        )
        .join(documents, documents.c.id == graph_relations.c.document_id)
        .where(
            checked(documents.c.tenant) == tenant,
            documents.c.state != DocumentState.DELETED,
            documents.c.active_generation == graph_relations.c.generation,
        )
        .order_by(best.c.matched.desc(), graph_relations.c.chunk_id, graph_relations.c.seq)
        .limit(limit)
    )
    if domains:
        statement = statement.where(documents.c.domain.in_(domains))
    return [
        StoredFact(
            row["chunk_id"],
            row["document_id"],
            row["generation"],
            row["verb"],
            row["subjects"],
            row["objects"],
            [_condition(stored) for stored in row["conditions"]],
        )
        for row in await sql.rows(statement)
    ]


async def clear(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> None:
    """Drop the facts of one generation."""
    for table in TABLES:
        await sql.execute(
            delete(table).where(
                checked(table.c.tenant) == tenant,
                table.c.document_id == document_id,
                table.c.generation == generation,
            )
        )


async def delete_document(sql: UnitOfWork, tenant: str, document_id: str) -> None:
    """Drop a document's facts, of every generation."""
    for table in TABLES:
        await sql.execute(
            delete(table).where(
                checked(table.c.tenant) == tenant, table.c.document_id == document_id
            )
        )


async def generations(sql: UnitOfWork, tenant: str, document_id: str) -> dict[int, int]:
    """How many rows of all kinds each generation of a document has."""
    counted: dict[int, int] = {}
    for table in TABLES:
        for row in await sql.rows(
            select(table.c.generation, func.count().label("count"))
            .where(checked(table.c.tenant) == tenant, table.c.document_id == document_id)
            .group_by(table.c.generation)
        ):
            counted[row["generation"]] = counted.get(row["generation"], 0) + row["count"]
    return counted


def _values(fact: Fact) -> dict[str, Any]:
    return {
        "verb": fact.verb,
        "subjects": list(fact.subjects),
        "objects": list(fact.objects),
        "conditions": [_stored(condition) for condition in fact.conditions],
        "start": fact.start,
        "end": fact.end,
        "source": fact.source,
    }


def _stored(condition: Condition) -> dict[str, Any]:
    """Bounds as decimal strings, so that no digit is lost; days of dates too."""
    interval = condition.interval
    return {
        "unit": interval.unit,
        "low": None if interval.low is None else str(interval.low),
        "high": None if interval.high is None else str(interval.high),
        "low_open": interval.low_open,
        "high_open": interval.high_open,
        "compared": condition.compared,
        "start": condition.start,
        "end": condition.end,
    }


def _condition(stored: Mapping[str, Any]) -> Condition:
    low, high = (None if stored[end] is None else Decimal(stored[end]) for end in ("low", "high"))
    interval = Interval(stored["unit"], low, high, stored["low_open"], stored["high_open"])
    return Condition(interval, stored["start"], stored["end"], stored["compared"])
