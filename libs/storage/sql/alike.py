"""Which documents say the same as others, or nearly: marked, never merged.

A mark is worked out when it is asked for, from what each document has of its own: the deletion of
one document leaves nothing that could hide another.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, delete, insert, select, union_all

from libs.documents.likeness import KEYS, NEAR, Likeness, similarity
from libs.storage.sql.tables import (
    checked,
    document_likeness,
    document_likeness_keys,
    documents,
)
from libs.storage.sql.work import UnitOfWork

# A text that very many share keys with (a form that is filled in) names the likeliest of them.
_CANDIDATES = 40
_NAMED = 20
_AT_ONCE = 100  # queries in one statement
_SKETCHED = (
    documents.c.id,
    documents.c.name,
    document_likeness.c.text_sha256,
    document_likeness.c.sketch,
)


@dataclass(frozen=True, slots=True)
class Near:
    document_id: str
    name: str
    similarity: float  # estimated, of the sets of their shingles


@dataclass(frozen=True, slots=True)
class Alike:
    """Other documents of the tenant that search shows; at most 20 of each kind."""

    same_text_as: tuple[str, ...] = ()  # ids, oldest first
    near: tuple[Near, ...] = ()  # most alike first


async def put(
    sql: UnitOfWork, tenant: str, document_id: str, generation: int, likeness: Likeness | None
) -> None:
    """What the generation is like, instead of what an older one was; None: it has no letter."""
    await forget(sql, document_id)
    if likeness is None:
        return
    of = {"document_id": document_id, "tenant": tenant}
    await sql.execute(
        insert(document_likeness).values(
            **of,
            generation=generation,
            text_sha256=likeness.text_sha256,
            sketch=likeness.sketch,
        )
    )
    await sql.execute(insert(document_likeness_keys), [{**of, "key": key} for key in likeness.keys])


async def forget(sql: UnitOfWork, document_id: str) -> None:
    for table in (document_likeness, document_likeness_keys):
        await sql.execute(delete(table).where(table.c.document_id == document_id))


async def alike(sql: UnitOfWork, tenant: str, ids: Collection[str]) -> dict[str, Alike]:
    """By document id; those that nothing is like are left out."""
    own = {row["id"]: row for row in await sql.rows(_shown(tenant).where(_in(ids)))}
    if not own:
        return {}
    same = await _same(sql, tenant, own)
    near = await _near(sql, tenant, own)
    return {id_: Alike(tuple(same[id_]), tuple(near[id_])) for id_ in own if same[id_] or near[id_]}


async def _same(sql: UnitOfWork, tenant: str, own: dict[str, RowMapping]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    columns = documents.c.id, document_likeness.c.text_sha256
    for row in await _of_each(
        sql,
        [
            _shown(tenant, *columns)
            .where(
                document_likeness.c.tenant == tenant,  # what its index begins with
                document_likeness.c.text_sha256 == text_sha256,
            )
            .order_by(documents.c.id)
            .limit(_NAMED + 1)  # itself among them
            for text_sha256 in sorted({row["text_sha256"] for row in own.values()})
        ],
    ):
        found[row["text_sha256"]].append(row["id"])
    return {
        id_: [other for other in sorted(found[row["text_sha256"]]) if other != id_][:_NAMED]
        for id_, row in own.items()
    }


async def _of_each(sql: UnitOfWork, queries: Sequence[Select[Any]]) -> list[RowMapping]:
    """The rows of them all, each with a limit of its own: none crowds out another's."""
    found: list[RowMapping] = []
    for at in range(0, len(queries), _AT_ONCE):
        some = [select(query.subquery()) for query in queries[at : at + _AT_ONCE]]
        found += await sql.rows(union_all(*some))
    return found


def _sharing_a_key(tenant: str, row: RowMapping) -> Select[Any]:
    """Documents with a key of this one's and another text: those of the same are named as such."""
    mine, other = document_likeness_keys.alias("mine"), document_likeness_keys.alias("other")
    return (
        select(mine.c.document_id.label("id"), other.c.document_id.label("candidate"))
        .join(other, and_(other.c.tenant == mine.c.tenant, other.c.key == mine.c.key))
        .join(document_likeness, document_likeness.c.document_id == other.c.document_id)
        .where(
            mine.c.tenant == tenant,
            mine.c.document_id == row["id"],
            document_likeness.c.text_sha256 != row["text_sha256"],
        )
        .limit(_CANDIDATES * KEYS)
    )


async def _near(sql: UnitOfWork, tenant: str, own: dict[str, RowMapping]) -> dict[str, list[Near]]:
    pairs = await _of_each(sql, [_sharing_a_key(tenant, row) for row in own.values()])
    shared: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        shared[pair["id"]][pair["candidate"]] += 1
    likeliest = {
        id_: [other for other, _ in counted.most_common(_CANDIDATES)]
        for id_, counted in shared.items()
    }
    wanted = sorted({other for others in likeliest.values() for other in others})
    rows: dict[str, RowMapping] = {}
    for at in range(0, len(wanted), 500):
        some = await sql.rows(_shown(tenant).where(_in(wanted[at : at + 500])))
        rows |= {row["id"]: row for row in some}
    return {id_: _nearest(row, likeliest.get(id_, []), rows) for id_, row in own.items()}


def _nearest(row: RowMapping, candidates: list[str], rows: dict[str, RowMapping]) -> list[Near]:
    found = [
        Near(other["id"], other["name"], round(share, 2))
        for id_ in candidates
        if (other := rows.get(id_)) is not None
        and (share := similarity(row["sketch"], other["sketch"])) >= NEAR
    ]
    return sorted(found, key=lambda near: (-near.similarity, near.document_id))[:_NAMED]


def _shown(tenant: str, *columns: ColumnElement[Any]) -> Select[Any]:
    """What is known of documents as search shows them now."""
    return (
        select(*(columns or _SKETCHED))
        .join(document_likeness, document_likeness.c.document_id == documents.c.id)
        .where(
            checked(documents.c.tenant) == tenant,
            documents.c.active_generation == document_likeness.c.generation,
        )
    )


def _in(ids: Collection[str]) -> ColumnElement[bool]:
    return documents.c.id.in_(list(ids))
