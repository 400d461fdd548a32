"""Conversations: who talks about what, with what memory, and what CLARIFY is waiting for."""

from sqlalchemy import RowMapping, insert, select, update

from libs.kernel import NotFoundError, new_id, now_us
from libs.storage.sql.idempotency import ReusedKeyError, made_before, remember
from libs.storage.sql.tables import conversations, turns
from libs.storage.sql.work import UnitOfWork

KEY_SCOPE = "conversations"


async def create_conversation(
    sql: UnitOfWork,
    tenant: str,
    *,
    agent: str = "knowledge",
    memory: str = "window",
    idempotency_key: str | None = None,
) -> str:
    """Start an empty conversation and return its id. `memory`: none, window or summary.

    Raises: ReusedKeyError; ConflictError: the same request was faster, repeat.
    """
    if made := await made_before(sql, tenant, KEY_SCOPE, idempotency_key):
        row = await load_conversation(sql, tenant, made)
        if (row["agent"], row["memory"]) != (agent, memory):
            raise ReusedKeyError("this Idempotency-Key was used for another conversation")
        return made
    conversation_id = new_id()
    await sql.execute(
        insert(conversations).values(
            id=conversation_id,
            tenant=tenant,
            agent=agent,
            memory=memory,
            next_turn_seq=1,
            created_at=now_us(),
        )
    )
    await remember(sql, tenant, KEY_SCOPE, idempotency_key, conversation_id)
    return conversation_id


async def load_conversation(sql: UnitOfWork, tenant: str, conversation_id: str) -> RowMapping:
    """Raises: NotFoundError, also for another tenant's conversation."""
    row = await sql.first(
        select(conversations).where(
            conversations.c.tenant == tenant, conversations.c.id == conversation_id
        )
    )
    if row is None:
        raise NotFoundError(f"there is no conversation {conversation_id}")
    return row


async def set_pending_question(
    sql: UnitOfWork, tenant: str, conversation_id: str, question: str | None
) -> None:
    """Keep the question that CLARIFY asked about, for the next turn to complete; None clears it.

    Raises: NotFoundError.
    """
    statement = (
        update(conversations)
        .where(conversations.c.tenant == tenant, conversations.c.id == conversation_id)
        .values(pending_question=question)
    )
    if not await sql.compare_and_set(statement):
        raise NotFoundError(f"there is no conversation {conversation_id}")


async def pending_question(sql: UnitOfWork, tenant: str, conversation_id: str) -> str | None:
    """The question that waits for the user's answer. Raises: NotFoundError."""
    row = await load_conversation(sql, tenant, conversation_id)
    question: str | None = row["pending_question"]
    return question


async def history(
    sql: UnitOfWork, tenant: str, conversation_id: str, limit: int, *, before_seq: int | None = None
) -> list[RowMapping]:
    """The last `limit` answered turns (state done), oldest first; `before_seq` leaves out later
    turns. Another tenant's conversation has none.
    """
    statement = (
        select(turns)
        .where(
            turns.c.tenant == tenant,
            turns.c.conversation_id == conversation_id,
            turns.c.state == "done",
        )
        .order_by(turns.c.seq.desc())
        .limit(limit)
    )
    if before_seq is not None:
        statement = statement.where(turns.c.seq < before_seq)
    return list(reversed(await sql.rows(statement)))


async def list_turns(
    sql: UnitOfWork, tenant: str, conversation_id: str, *, limit: int = 200
) -> list[RowMapping]:
    """The newest `limit` turns in any state, oldest first."""
    rows = await sql.rows(
        select(turns)
        .where(turns.c.tenant == tenant, turns.c.conversation_id == conversation_id)
        .order_by(turns.c.seq.desc())
        .limit(limit)
    )
    return list(reversed(rows))
