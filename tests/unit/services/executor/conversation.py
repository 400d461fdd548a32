"""A planned turn, an executor to answer it, and what a client would make of its events."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from libs.contracts import ConversationExecutionPlan, ExecutionMode, TurnCompleted, TurnPlanned
from libs.eventbus import Policies
from libs.eventbus.testing import InMemoryBus
from libs.models.ports import ChatModel
from libs.storage.sql import Database, turns
from libs.storage.sql.turn_events import TurnEvent
from services.executor.cancellation import RunningTurns
from services.executor.handlers import Deps, subscriptions
from services.executor.ports import EvidenceSource, Leases
from services.executor.run import Tools
from tests.fakes_answering import FakeEvidenceSource, FakeFanOut, FakeLeases, refund_evidence

QUESTION = "What is the refund limit?"
SEARCH = ConversationExecutionPlan(ExecutionMode.RAG_CHAT, QUESTION)
ASK_BACK = ConversationExecutionPlan(
    ExecutionMode.CLARIFY, "What is the limit?", clarify_question="Which limit do you mean?"
)


class Executor:
    """One executor process's worth of objects over a database."""

    def __init__(
        self,
        db: Database,
        *,
        evidence: EvidenceSource | None = None,
        model: ChatModel | None = None,
        leases: Leases | None = None,
        policies: Policies | None = None,
    ) -> None:
        self.fan_out = FakeFanOut()
        self.running = RunningTurns(db, poll_interval_s=0.02)
        self.deps = Deps(
            db,
            leases or FakeLeases(),
            self.running,
            self.fan_out,
            Tools(evidence or FakeEvidenceSource(refund_evidence()), model),
        )
        self.bus = InMemoryBus(db, subscriptions(self.deps), policies=policies)

    @property
    def completed(self) -> list[TurnCompleted]:
        return [event for event in self.bus.published if isinstance(event, TurnCompleted)]


async def planned(
    db: Database, plan: ConversationExecutionPlan = SEARCH, *, text: str = QUESTION
) -> TurnPlanned:
    """A new conversation whose first turn has this plan."""
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, "acme")
        turn = await turns.create_turn(sql, "acme", conversation_id, text, 3)
        await turns.set_plan(sql, "acme", turn["id"], plan)
    return TurnPlanned("acme", conversation_id, turn["id"], 3, plan)


class Seen:
    """What a client has after reading all events of a turn."""

    def __init__(self, events: Sequence[TurnEvent], turn: dict[str, Any]) -> None:
        self.events = events
        self.turn = turn
        self.types = [event.type for event in events]
        self.restarts = self.types.count("restarted")
        self.end = events[-1]
        since = max((i for i, kind in enumerate(self.types) if kind == "restarted"), default=-1)
        self.text = "".join(e.data["text"] for e in events[since + 1 :] if e.type == "delta")
        self.citations = [dict(e.data) for e in events[since + 1 :] if e.type == "citation"]
        self.statuses = [e.data["status"] for e in events if e.type == "status"]

    def check_whole(self) -> None:
        """What holds for every ended turn, whatever happened on the way."""
        assert [event.seq for event in self.events] == list(range(1, len(self.events) + 1))
        assert [kind for kind in self.types if kind in ("done", "error")] == [self.types[-1]]
        assert self.turn["answer"].strip() == self.text.strip()
        assert self.turn["citations"] == self.citations
        assert dict(self.end.data) == self.turn


async def seen(db: Database, turn_id: str) -> Seen:
    async with db.reading() as sql:
        events = await turns.events_after(sql, "acme", turn_id, 0)
        return Seen(events, turns.result(await turns.load_turn(sql, "acme", turn_id)))


async def until(condition: Callable[[], bool], *, within_s: float = 60.0) -> None:
    """Wait for a condition that other tasks bring about. Raises: TimeoutError."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - the product has no event for each test's wish
            await asyncio.sleep(0.005)
