"""Fakes for planning and answering: evidence, a scripted model, a fan-out that keeps records."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from libs.contracts import OutgoingRecord, TurnReply, decode
from libs.models.ports import ChatDelta, Message, ModelUnavailableError, Purpose
from libs.retrieval.types import Evidence, Hit, Passage, Scores

DOCUMENT_TEXT = (
    "Refunds\n\n"
    "Acme Corp. refunds any order within 30 days of delivery. "
    "The refund limit is 20,000 yuan per order. "
    "Larger refunds are approved by the finance director.\n\n"
    "Approval\n\n"
    "Approval takes two working days. The request goes to the team lead first."
)


def passage(
    text: str,
    *,
    evidence_id: int = 1,
    document_id: str = "d1",
    start: int = 0,
    heading_path: tuple[str, ...] = (),
    question_index: int = 0,
) -> Passage:
    """A parent block with one hit that covers all of it."""
    hit = Hit(
        chunk_id=f"{document_id}.1.c{evidence_id}",
        document_id=document_id,
        document_name=f"{document_id}.txt",
        text=text,
        start=start,
        end=start + len(text),
        page=1,
        heading_path=heading_path,
        scores=Scores(fused=1.0 / evidence_id, vector=0.8, keyword=1.0),
    )
    return Passage(
        evidence_id=evidence_id,
        document_id=document_id,
        document_name=f"{document_id}.txt",
        text=text,
        start=start,
        end=start + len(text),
        page=1,
        heading_path=heading_path,
        question_index=question_index,
        hits=[hit],
    )


def refund_evidence() -> Evidence:
    """Two blocks of `DOCUMENT_TEXT`, at their real places."""
    second = DOCUMENT_TEXT.index("Approval takes")
    first = DOCUMENT_TEXT.index("Acme")
    end = DOCUMENT_TEXT.index("\n\nApproval")
    return Evidence(
        [
            passage(DOCUMENT_TEXT[first:end], start=first, heading_path=("Refunds",)),
            passage(
                DOCUMENT_TEXT[second:], evidence_id=2, start=second, heading_path=("Approval",)
            ),
        ],
        coverage=1.0,
    )


class FakeEvidenceSource:
    """`EvidenceSource` that always finds the same; or raises, or hangs until released."""

    def __init__(self, evidence: Evidence | Exception, *, gate: asyncio.Event | None = None):
        self.evidence = evidence
        self.gate = gate
        self.asked: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []

    async def gather(
        self, tenant: str, questions: Sequence[str], *, domains: Sequence[str] = ()
    ) -> Evidence:
        self.asked.append((tenant, tuple(questions), tuple(domains)))
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.evidence, Exception):
            raise self.evidence
        return self.evidence


class FakeChatModel:
    """`ChatModel` that streams given pieces; an exception among them is raised in its place."""

    name = "fake"

    def __init__(
        self,
        pieces: Sequence[str | Exception] = (),
        *,
        plan: dict[str, object] | Exception | None = None,
        pause: asyncio.Event | None = None,
    ) -> None:
        self.pieces = pieces
        self.plan = plan
        self.pause = pause  # waited for after the first piece
        self.prompts: list[list[Message]] = []

    async def stream(
        self, messages: Sequence[Message], *, purpose: Purpose, max_tokens: int
    ) -> AsyncGenerator[ChatDelta, None]:
        self.prompts.append(list(messages))
        for i, piece in enumerate(self.pieces):
            if isinstance(piece, Exception):
                raise piece
            if i == 1 and self.pause is not None:
                await self.pause.wait()
            yield ChatDelta(piece)
        yield ChatDelta(finish_reason="stop")

    async def complete_json(
        self,
        messages: Sequence[Message],
        *,
        schema: dict[str, object],
        purpose: Purpose,
        max_tokens: int,
    ) -> dict[str, object]:
        self.prompts.append(list(messages))
        if isinstance(self.plan, Exception):
            raise self.plan
        if self.plan is None:
            raise ModelUnavailableError("unavailable", "no plan was scripted")
        return self.plan


class FakeFanOut:
    """`FanOut` that keeps what it was offered."""

    def __init__(self) -> None:
        self.records: list[OutgoingRecord] = []

    def offer(self, records: Sequence[OutgoingRecord]) -> None:
        self.records += records

    @property
    def replies(self) -> list[TurnReply]:
        events = [decode(record.value) for record in self.records]
        return [event for event in events if isinstance(event, TurnReply)]


class FakeLeases:
    """`Leases` in memory; names in `taken` belong to somebody else who is alive."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[bool]:
        yield name not in self.taken
