"""The deterministic planner: five decisions from rules alone, always available, always the same."""

from collections.abc import Sequence
from dataclasses import dataclass

from libs.contracts import ConversationExecutionPlan, ExecutionMode
from services.orchestrator.domain.ambiguity import clarification, completes
from services.orchestrator.domain.rewrite import continued, rewrite
from services.orchestrator.domain.scope import named_domains
from services.orchestrator.domain.small_talk import small_talk_reply
from services.orchestrator.domain.split import split

MAX_QUESTION_CHARS = 2_000  # of the rewritten question; retrieval and models see no more


@dataclass(frozen=True, slots=True)
class Situation:
    """What a turn is planned from."""

    text: str  # the user's words
    previous: str | None = None  # the last question of the conversation, completed
    pending: str | None = None  # what CLARIFY asked about in the last turn
    domains: Sequence[str] = ()  # the tenant's
    agent_id: str = "knowledge"
    summary: str = ""  # what was said longer ago
    recent: Sequence[tuple[str, str]] = ()  # (question, answer), oldest first


@dataclass(frozen=True, slots=True)
class Decision:
    """A plan, and the question that waits for the user's answer when the plan asks back."""

    plan: ConversationExecutionPlan
    pending: str | None = None
    by: str = "rules"  # or the model's name
    note: str = ""  # why a model's plan, or a part of it, was not taken


def decide(situation: Situation) -> Decision:
    """Route, rewrite, ambiguity, split and domains, in the order CLARIFY > RAG_CHAT.

    A message that answers a pending clarification completes that question and is never asked back
    a second time. The plan is always valid.
    """
    text = _bounded(situation.text)
    reply = small_talk_reply(text)
    if reply is not None:
        return Decision(_clarify(situation, text, reply), situation.pending)
    completed = completes(text, situation.pending) if situation.pending else None
    if completed is not None:
        return Decision(_search(situation, _bounded(completed)))
    question = _bounded(rewrite(text, situation.previous))
    unclear = clarification(question)
    if unclear is not None and situation.previous:
        question, unclear = _bounded(continued(text, situation.previous)), None
    if unclear is not None:
        return Decision(_clarify(situation, question, unclear), question)
    return Decision(_search(situation, question))


def _search(situation: Situation, question: str) -> ConversationExecutionPlan:
    return ConversationExecutionPlan(
        ExecutionMode.RAG_CHAT,
        question,
        sub_questions=split(question),
        knowledge_domains=named_domains(question, situation.domains),
        agent_id=situation.agent_id,
    )


def _clarify(situation: Situation, question: str, ask: str) -> ConversationExecutionPlan:
    return ConversationExecutionPlan(
        ExecutionMode.CLARIFY, question, clarify_question=ask, agent_id=situation.agent_id
    )


def _bounded(text: str) -> str:
    bare = " ".join(text.split())
    return bare[:MAX_QUESTION_CHARS] or "?"
