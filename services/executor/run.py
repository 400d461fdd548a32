"""One turn, from its plan to its terminal event, resumable at every step."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import RowMapping

from libs.contracts import ConversationExecutionPlan, ExecutionMode
from libs.documents.language import language_of
from libs.kernel import now_us
from libs.models.call_log import usage_of
from libs.models.ports import ChatModel, Purpose
from libs.observability.metrics import TURN_FIRST_DELTA_SECONDS, TURN_SECONDS
from libs.retrieval.types import Evidence
from libs.service.turn_journal import TurnJournal
from libs.storage.sql.turns import Outcome, checkpoint
from services.executor.answering import (
    Answer,
    UnusableAnswerError,
    ask_model,
    decline,
    quote_evidence,
)
from services.executor.cancellation import StopSignal
from services.executor.domain.prompt import Background, answer_messages
from services.executor.domain.shapes import citation, evidence_event, freeze, thaw
from services.executor.domain.suggestions import suggestions
from services.executor.ports import EvidenceSource

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a run works with."""

    evidence: EvidenceSource
    model: ChatModel | None
    answer_max_tokens: int = 800


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a turn stands when an executor takes it up."""

    turn: RowMapping
    seq: int  # of its last event
    has_said: bool  # clients hold text that an executor before this one streamed
    background: Background


class TurnRun:
    """The steps of one turn: start, evidence, answer, end.

    Each step ends in one unit of work that holds its events and the checkpoint, so whoever takes
    the turn over goes on after the last whole step. Text that was streamed in a step that did not
    end is void: a `restarted` event says so, and the step is done again. The last step writes
    citations, suggestions and the terminal event together.
    """

    def __init__(
        self,
        plan: ConversationExecutionPlan,
        standing: Standing,
        journal: TurnJournal,
        stop: StopSignal,
        tools: Tools,
    ) -> None:
        self._plan = plan
        self._standing = standing
        self._turn = turn = standing.turn
        self._journal = journal
        self._stop = stop
        self._tools = tools
        self._language = language_of(turn["text"])
        self._said: list[str] = []

    async def execute(self) -> None:
        """Bring the turn to its end.

        Raises: TurnCancelledError, ConflictError (overtaken, or ended meanwhile), TransientError.
        """
        await self._start()
        if self._plan.execution_mode is ExecutionMode.CLARIFY:
            question = self._plan.clarify_question or ""
            await self._say(question)
            await self._end(Answer(question), Evidence())
            return
        evidence = await self._evidence()
        self._stop.check()
        answer = await self._answer(evidence)
        await self._end(answer, evidence)

    async def _start(self) -> None:
        if self._standing.has_said:
            await self._restart("taken-over")
        if self._turn["checkpoint"] is not None:
            # Any write shows whoever had the turn before that it has another writer now.
            await self._journal.append(("status", self._status("resumed")))
            return
        status = "asking-back"
        if self._plan.execution_mode is not ExecutionMode.CLARIFY:
            status = "searching"
        async with self._journal.step() as step:
            if self._plan.execution_mode is ExecutionMode.REACT_AGENT:
                await step.append(("status", self._status("agent-unavailable")))
            await step.append(("status", self._status(status)))
            await checkpoint(step.sql, self._turn["tenant"], self._turn["id"], {"step": "started"})

    async def _evidence(self) -> Evidence:
        saved = (self._turn["checkpoint"] or {}).get("evidence")
        if saved is not None:
            return thaw(saved)
        found = await self._gather(self._plan.knowledge_domains)
        if found.declined and self._plan.knowledge_domains:
            # A domain narrows where to look first; it is no reason to say that nothing is there.
            await self._journal.append(("status", self._status("searching-all-domains")))
            found = await self._gather([])
        async with self._journal.step() as step:
            await step.append(
                ("evidence", evidence_event(found)), ("status", self._status("answering"))
            )
            saved = {"step": "evidence", "evidence": freeze(found)}
            await checkpoint(step.sql, self._turn["tenant"], self._turn["id"], saved)
        return found

    async def _gather(self, domains: Sequence[str]) -> Evidence:
        return await self._stop.unless_stopped(
            self._tools.evidence.gather(self._turn["tenant"], self._questions(), domains=domains)
        )

    async def _answer(self, evidence: Evidence) -> Answer:
        if evidence.declined or not evidence.passages:
            return await decline(self._language, self._say)
        if self._tools.model is not None:
            try:
                return await self._ask(self._tools.model, evidence)
            except UnusableAnswerError as exc:
                log.warning("model_answer_unusable", turn_id=self._turn["id"], reason=exc.reason)
                await self._fall_back(exc.reason)
        return await quote_evidence(
            self._questions(), evidence, self._language, self._say, self._stop
        )

    async def _ask(self, model: ChatModel, evidence: Evidence) -> Answer:
        messages = answer_messages(
            self._plan.rewritten_question,
            self._plan.sub_questions,
            evidence.passages,
            self._language,
            self._standing.background,
        )
        return await ask_model(
            model,
            messages,
            evidence,
            self._language,
            self._say,
            self._stop,
            purpose=Purpose(self._turn["tenant"], "answer", self._turn["id"]),
            max_tokens=self._tools.answer_max_tokens,
        )

    async def _fall_back(self, reason: str) -> None:
        """Say why the documents are quoted instead, and void what the model had said."""
        status = self._status("quoting-documents") | {"reason": reason}
        if self._said:
            await self._restart(reason)
        await self._journal.append(("status", status))

    async def _restart(self, reason: str) -> None:
        self._said.clear()
        await self._journal.append(("restarted", {"turn_id": self._turn["id"], "reason": reason}))

    async def _say(self, text: str) -> None:
        await self._journal.append(("delta", {"text": text}))
        if not self._said:
            TURN_FIRST_DELTA_SECONDS.observe(self._age_s())
        self._said.append(text)

    async def _end(self, answer: Answer, evidence: Evidence) -> None:
        citations = [citation(quote) for quote in answer.quotes]
        follow_ups = []
        if citations:
            follow_ups = suggestions(
                self._plan.rewritten_question, evidence.passages, self._language
            )
        async with self._journal.step() as step:
            await step.append(*(("citation", item) for item in citations))
            await step.append(*(("suggestion", {"text": text}) for text in follow_ups))
            await step.finish(
                Outcome(
                    "done",
                    answer=answer.text,
                    declined=answer.declined,
                    extractive=answer.extractive,
                    citations=citations,
                    suggestions=follow_ups,
                    usage=await usage_of(step.sql, self._turn["id"]) | answer.usage,
                )
            )
        TURN_SECONDS.labels("done").observe(self._age_s())

    def _age_s(self) -> float:
        return (now_us() - int(self._turn["created_at"])) / 1e6

    def _questions(self) -> Sequence[str]:
        return self._plan.sub_questions or [self._plan.rewritten_question]

    def _status(self, status: str) -> dict[str, str]:
        return {"turn_id": self._turn["id"], "status": status}
