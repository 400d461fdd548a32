"""Memories of conversations. SQL says up to which turn one was folded; events only wake it up."""

from dataclasses import asdict

from sqlalchemy import RowMapping, func, insert, select, update

from libs.contracts import MemoryCompacted
from libs.contracts.memory import ConversationMemory, Exchange
from libs.kernel import ConflictError, now_us
from libs.storage.sql.tables import conversations, memories, turns
from libs.storage.sql.turns import FINAL_STATES
from libs.storage.sql.work import UnitOfWork


async def load_memory(sql: UnitOfWork, tenant: str, conversation_id: str) -> ConversationMemory:
    """The stored memory; an empty one where there is none yet, or for another tenant's id."""
    row = await sql.first(
        select(memories).where(
            memories.c.tenant == tenant, memories.c.conversation_id == conversation_id
        )
    )
    if row is None:
        return ConversationMemory()
    window = [Exchange(**exchange) for exchange in row["window"]]
    return ConversationMemory(row["folded_turn_seq"], window, row["summary"], row["slots"])


async def unfolded_exchanges(
    sql: UnitOfWork, tenant: str, conversation_id: str, after_seq: int, *, limit: int = 100
) -> list[Exchange]:
    """Finished turns after `after_seq`, in order, up to the first that still runs."""
    rows = await sql.rows(
        select(turns.c.seq, turns.c.text, turns.c.answer, turns.c.state)
        .where(
            turns.c.tenant == tenant,
            turns.c.conversation_id == conversation_id,
            turns.c.seq > after_seq,
        )
        .order_by(turns.c.seq)
        .limit(limit)
    )
    found: list[Exchange] = []
    for row in rows:
        if row["state"] not in FINAL_STATES:
            break
        answer = row["answer"] if row["state"] == "done" else ""
        found.append(Exchange(row["seq"], row["text"], answer or ""))
    return found


async def replace_memory(
    sql: UnitOfWork,
    tenant: str,
    conversation_id: str,
    memory: ConversationMemory,
    *,
    expect_folded: int,
) -> bool:
    """Store a memory in place of the one that was folded up to `expect_folded`, and announce it.

    False: somebody else folded this conversation in the meantime.
    """
    values = {
        "folded_turn_seq": memory.folded_turn_seq,
        "window": [asdict(exchange) for exchange in memory.window],
        "summary": memory.summary,
        "slots": dict(memory.slots),
        "updated_at": now_us(),
    }
    stored = await sql.compare_and_set(
        update(memories)
        .where(
            memories.c.tenant == tenant,
            memories.c.conversation_id == conversation_id,
            memories.c.folded_turn_seq == expect_folded,
        )
        .values(**values)
    )
    if not stored:
        if expect_folded:
            return False
        try:
            await sql.execute(
                insert(memories).values(conversation_id=conversation_id, tenant=tenant, **values)
            )
        except ConflictError:
            return False
    await sql.emit(MemoryCompacted(tenant, conversation_id, memory.folded_turn_seq))
    return True


async def conversations_behind(
    sql: UnitOfWork, after: str = "", *, limit: int = 200
) -> list[RowMapping]:
    """(tenant, id) of conversations with finished turns that no memory covers, of every tenant,
    by id, ids greater than `after`.
    """
    folded = func.coalesce(memories.c.folded_turn_seq, 0)
    return await sql.rows(
        select(conversations.c.tenant, conversations.c.id)
        .select_from(
            turns.join(conversations, conversations.c.id == turns.c.conversation_id).outerjoin(
                memories, memories.c.conversation_id == conversations.c.id
            )
        )
        .where(
            conversations.c.memory != "none",
            turns.c.state.in_(FINAL_STATES),
            turns.c.seq == folded + 1,
            conversations.c.id > after,
        )
        .order_by(conversations.c.id)
        .limit(limit)
    )
