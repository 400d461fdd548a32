"""How a turn gets its answer: from a model when one answers well, else quoted from the evidence."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from libs.kernel import PermanentError
from libs.models.ports import ChatDelta, ChatModel, Message, ModelUnavailableError, Purpose
from libs.observability.metrics import CITATIONS_DROPPED, EXTRACTIVE_ANSWERS
from libs.retrieval.types import Evidence
from services.executor.cancellation import StopSignal
from services.executor.domain.citations import CitationFilter, claims_of
from services.executor.domain.declines import sounds_like_decline
from services.executor.domain.extractive import extractive_answer
from services.executor.domain.phrases import phrase
from services.executor.domain.prompt import NO_ANSWER
from services.executor.domain.quotes import Quote, supporting_quote
from services.executor.streaming import grouped

EmitText = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer and what it rests on."""

    text: str
    quotes: Sequence[Quote] = ()
    declined: bool = False
    extractive: bool = False
    usage: dict[str, Any] = field(default_factory=dict)


class UnusableAnswerError(Exception):
    """A model's answer that must not stand; `reason` is a code, shown to the user as a status."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def decline(language: str, emit: EmitText) -> Answer:
    """Say that nothing was found: no citation, no model."""
    text = phrase("declined", language)
    await emit(text)
    return Answer(text, declined=True)


async def quote_evidence(
    questions: Sequence[str], evidence: Evidence, language: str, emit: EmitText, stop: StopSignal
) -> Answer:
    """The extractive answer, a piece at a time."""
    found = extractive_answer(questions, evidence.passages, language)
    for piece in found.pieces:
        stop.check()
        await emit(piece)
    EXTRACTIVE_ANSWERS.inc()
    return Answer("".join(found.pieces), found.quotes, extractive=True)


async def ask_model(
    model: ChatModel,
    messages: Sequence[Message],
    evidence: Evidence,
    language: str,
    emit: EmitText,
    stop: StopSignal,
    *,
    purpose: Purpose,
    max_tokens: int,
) -> Answer:
    """Stream a model's answer through the citation filter.

    Raises: UnusableAnswerError (the model is away, was cut off, or cites nothing),
    TurnCancelledError, ConflictError (another executor has the turn).
    """
    passages = {passage.evidence_id: passage for passage in evidence.passages}
    citations = CitationFilter(passages)
    opening = Opening(NO_ANSWER)
    said: list[str] = []
    end = ChatDelta()
    try:
        async with (
            aclosing(model.stream(messages, purpose=purpose, max_tokens=max_tokens)) as deltas,
            aclosing(grouped(deltas, stop)) as groups,
        ):
            async for group in groups:
                end = group[-1]
                text = citations.feed(opening.feed("".join(delta.text for delta in group)))
                if text:
                    said.append(text)
                    await emit(text)
    except ModelUnavailableError as exc:
        raise UnusableAnswerError(f"model-{exc.outcome}") from exc
    except PermanentError as exc:
        raise UnusableAnswerError(exc.reason) from exc
    finally:
        CITATIONS_DROPPED.inc(citations.unknown_count)
    rest = citations.feed(opening.finish()) + citations.finish()
    if opening.matched:
        return await decline(language, emit)
    if rest:
        said.append(rest)
        await emit(rest)
    text = "".join(said).strip()
    usage = _usage(model, end, citations.unknown_count)
    if not citations.used:
        if text and sounds_like_decline(text):
            return Answer(text, declined=True, usage=usage)
        raise UnusableAnswerError("model-uncited" if text else "model-empty")
    quotes = [supporting_quote(claims_of(text, n), passages[n]) for n in citations.used]
    return Answer(text, quotes, usage=usage)


class Opening:
    """Holds an answer's first characters back until they are known not to be a code word."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._held = ""
        self._passing = False
        self.matched = False

    def feed(self, piece: str) -> str:
        if self._passing:
            return piece
        self._held += piece
        bare = self._held.lstrip(" \n\t\"'*`.[")
        if self._word.startswith(bare[: len(self._word)]) and len(bare) <= len(self._word) + 8:
            return ""
        self._passing = True
        held, self._held = self._held, ""
        return held

    def finish(self) -> str:
        """What was held at the end: '' when it was the code word."""
        held, self._held = self._held, ""
        self.matched = not self._passing and self._word in held
        return "" if self.matched else held


def _usage(model: ChatModel, end: ChatDelta, unknown_count: int) -> dict[str, Any]:
    usage: dict[str, Any] = {"model": model.name, "unknown_citations": unknown_count}
    if end.finish_reason == "length":
        usage["cut_at_limit"] = True
    return usage
