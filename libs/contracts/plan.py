"""The contract between orchestrator and executor."""

from dataclasses import dataclass, field
from enum import StrEnum

MAX_SUB_QUESTIONS = 4


class ExecutionMode(StrEnum):
    """How a turn is answered, in order of priority."""

    CLARIFY = "CLARIFY"
    RAG_CHAT = "RAG_CHAT"
    REACT_AGENT = "REACT_AGENT"


@dataclass(frozen=True, slots=True)
class ConversationExecutionPlan:
    """One plan, five decisions: route, rewrite, ambiguity, split and knowledge domains.

    Raises:
        ValueError: a combination no executor could run (message says which).
    """

    execution_mode: ExecutionMode
    rewritten_question: str
    sub_questions: list[str] = field(default_factory=list)
    knowledge_domains: list[str] = field(default_factory=list)
    clarify_question: str | None = None
    agent_id: str = "knowledge"

    def __post_init__(self) -> None:
        if not self.rewritten_question.strip():
            raise ValueError("rewritten_question is empty")
        if len(self.sub_questions) > MAX_SUB_QUESTIONS:
            raise ValueError(f"more than {MAX_SUB_QUESTIONS} sub_questions")
        if (self.execution_mode is ExecutionMode.CLARIFY) != bool(self.clarify_question):
            raise ValueError("clarify_question belongs to CLARIFY, and CLARIFY needs one")
