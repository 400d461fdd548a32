"""Reads what a turn is planned from: its words, the conversation's memory, the tenant's domains."""

from sqlalchemy import RowMapping

from libs.contracts import ExecutionMode
from libs.storage.sql import UnitOfWork
from libs.storage.sql.domains import domains_of
from libs.storage.sql.memories import load_memory
from libs.storage.sql.turns import history, load_conversation, plan_of
from services.orchestrator.domain.planner import Situation

RECENT_TURNS = 4


async def read_situation(sql: UnitOfWork, turn: RowMapping) -> Situation:
    """Raises: NotFoundError (the conversation)."""
    tenant, conversation_id = turn["tenant"], turn["conversation_id"]
    conversation = await load_conversation(sql, tenant, conversation_id)
    domains = await domains_of(sql, tenant)
    if conversation["memory"] == "none":
        return Situation(
            turn["text"],
            pending=conversation["pending_question"],
            domains=domains,
            agent_id=conversation["agent"],
        )
    earlier = await history(sql, tenant, conversation_id, RECENT_TURNS, before_seq=turn["seq"])
    memory = await load_memory(sql, tenant, conversation_id)
    return Situation(
        turn["text"],
        previous=_last_question(earlier),
        pending=conversation["pending_question"],
        domains=domains,
        agent_id=conversation["agent"],
        summary=memory.summary,
        recent=[(row["text"], row["answer"] or "") for row in earlier],
    )


def _last_question(earlier: list[RowMapping]) -> str | None:
    """The last question that was searched, in its completed form."""
    for row in reversed(earlier):
        plan = plan_of(row)
        if plan is not None and plan.execution_mode is not ExecutionMode.CLARIFY:
            return plan.rewritten_question
    return None
