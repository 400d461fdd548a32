"""How far the graph of each document's active generation has come.

A row is due from the moment its generation becomes active. Every step compares and sets it in the
transaction that writes the facts, so nothing is written for a generation that is over.
"""

from collections.abc import Sequence

from sqlalchemy import RowMapping, delete, insert, literal, select, update

from libs.kernel import now_us
from libs.storage.sql import graph
from libs.storage.sql.document_states import DocumentState
from libs.storage.sql.tables import documents, enrichments
from libs.storage.sql.work import UnitOfWork

DUE, DONE, FAILED = "due", "done", "failed"
# Of the rules in `libs.documents.graph`: raise it when they find more, and every document is read
# again by them.
RULES_VERSION = 2


async def begin(sql: UnitOfWork, tenant: str, document_id: str, generation: int) -> None:
    """A generation became active: its graph is due, that of the one before is gone."""
    await drop(sql, tenant, document_id)
    await sql.execute(
        insert(enrichments).values(
            document_id=document_id,
            tenant=tenant,
            generation=generation,
            state=DUE,
            next_ordinal=0,
            rules=RULES_VERSION,
            model_calls=0,
            updated_at=now_us(),
        )
    )


async def drop(sql: UnitOfWork, tenant: str, document_id: str) -> None:
    """Forget a document: its facts, and that there is anything to do."""
    # The row that writers of facts compare and set goes first: one that was faster has committed
    # its facts by then, and they go, too.
    await sql.execute(
        delete(enrichments).where(
            enrichments.c.tenant == tenant, enrichments.c.document_id == document_id
        )
    )
    await graph.delete_document(sql, tenant, document_id)


async def find(sql: UnitOfWork, tenant: str, document_id: str) -> RowMapping | None:
    return await sql.first(
        select(enrichments).where(
            enrichments.c.tenant == tenant, enrichments.c.document_id == document_id
        )
    )


async def advance(
    sql: UnitOfWork, seen: RowMapping, *, next_ordinal: int, model_calls: int = 0
) -> bool:
    """A batch is done; False: somebody else did it, or nobody waits for it any more."""
    return await _set(
        sql, seen, next_ordinal=next_ordinal, model_calls=seen["model_calls"] + model_calls
    )


async def finish(sql: UnitOfWork, seen: RowMapping) -> bool:
    """All chunks are done."""
    return await _set(sql, seen, state=DONE, detail=None)


async def fail(
    sql: UnitOfWork, tenant: str, document_id: str, generation: int, detail: str
) -> bool:
    """It was given up; what was found stays, and the document itself is none the worse."""
    return await sql.compare_and_set(
        update(enrichments)
        .where(
            enrichments.c.tenant == tenant,
            enrichments.c.document_id == document_id,
            enrichments.c.generation == generation,
            enrichments.c.state == DUE,
        )
        .values(state=FAILED, detail=detail, updated_at=now_us())
    )


async def due(sql: UnitOfWork, *, after: str, limit: int) -> list[RowMapping]:
    """What is due, of every tenant, by ascending document id from `after` (exclusive) on.

    With the `active_counts` of each document.
    """
    return await sql.rows(
        select(enrichments, documents.c.active_counts)
        .join(documents, documents.c.id == enrichments.c.document_id)
        .where(enrichments.c.state == DUE, enrichments.c.document_id > after)
        .order_by(enrichments.c.document_id)
        .limit(limit)
    )


async def adopt(sql: UnitOfWork, *, limit: int) -> int:
    """Make due what became active before there was a graph, or was read by older rules.

    Returns: how many, at most `limit` of each; 0 when there are none left.
    """
    strangers = (
        select(
            documents.c.id,
            documents.c.tenant,
            documents.c.active_generation,
            *map(literal, (DUE, 0, RULES_VERSION, 0, now_us())),
        )
        .outerjoin(enrichments, enrichments.c.document_id == documents.c.id)
        .where(
            documents.c.active_generation.is_not(None),
            documents.c.state != DocumentState.DELETED,
            enrichments.c.document_id.is_(None),
        )
        .order_by(documents.c.id)
        .limit(limit)
    )
    columns = [
        "document_id",
        "tenant",
        "generation",
        "state",
        "next_ordinal",
        "rules",
        "model_calls",
        "updated_at",
    ]
    adopted = await sql.affected(insert(enrichments).from_select(columns, strangers))
    older = await sql.rows(
        select(enrichments.c.document_id).where(enrichments.c.rules < RULES_VERSION).limit(limit)
    )
    await _again(sql, [row["document_id"] for row in older])
    return adopted + len(older)


async def _again(sql: UnitOfWork, document_ids: Sequence[str]) -> None:
    await sql.execute(
        update(enrichments)
        .where(enrichments.c.document_id.in_(document_ids))
        .values(state=DUE, next_ordinal=0, rules=RULES_VERSION, model_calls=0, updated_at=now_us())
    )


async def _set(sql: UnitOfWork, seen: RowMapping, **values: object) -> bool:
    return await sql.compare_and_set(
        update(enrichments)
        .where(
            enrichments.c.tenant == seen["tenant"],
            enrichments.c.document_id == seen["document_id"],
            enrichments.c.generation == seen["generation"],
            enrichments.c.next_ordinal == seen["next_ordinal"],
            enrichments.c.state == DUE,
        )
        .values(**values, updated_at=now_us())
    )
