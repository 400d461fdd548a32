"""Planning turns: one plan, its events and its announcement, whatever is delivered twice."""

import asyncio

from libs.contracts import ConversationExecutionPlan, ExecutionMode, TurnPlanned, TurnRequested
from libs.eventbus import Failure
from libs.eventbus.testing import InMemoryBus
from libs.kernel import PermanentError
from libs.storage.sql import Database, turns
from services.orchestrator.adapters.rules import RulePlanner
from services.orchestrator.domain.planner import Decision, Situation
from services.orchestrator.handlers import Deps, subscriptions, turn_failed
from services.orchestrator.ports import Planner
from tests.fakes_answering import FakeFanOut


class Platform:
    """A conversation, the orchestrator, and what it left behind."""

    def __init__(self, db: Database, planner: Planner | None = None) -> None:
        self.db = db
        self.fan_out = FakeFanOut()
        self.bus = InMemoryBus(db, subscriptions(Deps(db, planner or RulePlanner(), self.fan_out)))
        self.conversation_id = ""

    async def ask(self, text: str, *, memory: str = "window") -> TurnRequested:
        async with self.db.work() as sql:
            if not self.conversation_id:
                self.conversation_id = await turns.create_conversation(sql, "acme", memory=memory)
            turn = await turns.create_turn(sql, "acme", self.conversation_id, text, 3)
        return TurnRequested("acme", self.conversation_id, turn["id"], 3)

    async def plan(self, text: str) -> ConversationExecutionPlan:
        """Ask, let it be planned and answered, and return the plan."""
        event = await self.ask(text)
        await self.bus.deliver(event)
        async with self.db.work() as sql:
            plan = turns.plan_of(await turns.load_turn(sql, "acme", event.turn_id))
            await turns.finish(sql, "acme", event.turn_id, turns.Outcome("done", answer="-"))
        assert plan is not None
        return plan

    async def events(self, turn_id: str) -> list[str]:
        async with self.db.reading() as sql:
            return [e.type for e in await turns.events_after(sql, "acme", turn_id, 0)]

    async def state(self, turn_id: str) -> str:
        async with self.db.reading() as sql:
            return str((await turns.load_turn(sql, "acme", turn_id))["state"])


async def test_turn_gets_a_plan_events_and_an_announcement(db: Database) -> None:
    platform = Platform(db)
    asked = await platform.ask("What is the refund limit?")
    await platform.bus.deliver(asked)
    assert await platform.state(asked.turn_id) == "planned"
    assert await platform.events(asked.turn_id) == ["status", "status", "plan"]
    planned = [e for e in platform.bus.published if isinstance(e, TurnPlanned)]
    assert [(e.turn_id, e.plan.rewritten_question) for e in planned] == [
        (asked.turn_id, "What is the refund limit?")
    ]
    assert [(r.seq, r.type) for r in platform.fan_out.replies] == [(2, "status"), (3, "plan")]
    assert {record.partition for record in platform.fan_out.records} == {3}


async def test_redelivery_plans_once(db: Database) -> None:
    platform = Platform(db)
    asked = await platform.ask("What is the refund limit?")
    await platform.bus.deliver(asked)
    await platform.bus.deliver(asked)
    await platform.bus.redeliver()
    assert await platform.events(asked.turn_id) == ["status", "status", "plan"]
    assert len([e for e in platform.bus.published if isinstance(e, TurnPlanned)]) == 1


async def test_follow_up_uses_the_conversation_and_memory_none_forgets_it(db: Database) -> None:
    platform = Platform(db)
    await platform.plan("When was Acme Corp. founded?")
    follow_up = await platform.plan("Who is its director?")
    assert follow_up.rewritten_question == "Who is Acme Corp.'s director?"

    forgetful = Platform(db)
    first = await forgetful.ask("-", memory="none")
    async with db.work() as sql:
        await turns.finish(sql, "acme", first.turn_id, turns.Outcome("done"))
    await forgetful.plan("When was Acme Corp. founded?")
    assert (await forgetful.plan("When was it founded?")).execution_mode is ExecutionMode.CLARIFY


async def test_clarification_keeps_the_question_and_the_answer_completes_it(db: Database) -> None:
    platform = Platform(db)
    asked_back = await platform.plan("What is the deadline?")
    assert asked_back.execution_mode is ExecutionMode.CLARIFY
    await platform.plan("thanks")
    completed = await platform.plan("the expense report")
    assert completed.rewritten_question == "What is the deadline (the expense report)?"
    async with db.reading() as sql:
        pending = await turns.pending_question(sql, "acme", platform.conversation_id)
    assert pending is None


async def test_turn_cancelled_before_its_plan_ends_without_one(db: Database) -> None:
    platform = Platform(db)
    asked = await platform.ask("What is the refund limit?")
    async with db.work() as sql:
        await turns.cancel(sql, "acme", asked.turn_id)
    await platform.bus.deliver(asked)
    assert await platform.state(asked.turn_id) == "cancelled"
    assert await platform.events(asked.turn_id) == ["status", "done"]


class RefusingPlanner:
    async def decide(self, situation: Situation, *, tenant: str, turn_id: str) -> Decision:
        raise PermanentError("unplannable", "This cannot be planned.")


async def test_turn_that_cannot_be_planned_ends_with_one_error(db: Database) -> None:
    platform = Platform(db, RefusingPlanner())
    asked = await platform.ask("What is the refund limit?")
    await platform.bus.deliver(asked)
    await platform.bus.redeliver()
    assert await platform.state(asked.turn_id) == "failed"
    assert await platform.events(asked.turn_id) == ["status", "error"]
    async with db.reading() as sql:
        turn = await turns.load_turn(sql, "acme", asked.turn_id)
    assert turn["error"] == {"reason": "unplannable", "detail": "This cannot be planned."}


async def test_a_try_that_fails_leaves_a_turn_alone_that_another_has_planned(db: Database) -> None:
    platform = Platform(db)
    asked = await platform.ask("What is the refund limit?")
    await platform.bus.deliver(asked)
    failure = Failure("retries-exhausted", "SQL was away", 20, permanent=False)
    await turn_failed(asked, failure, Deps(db, RulePlanner(), platform.fan_out))
    assert await platform.state(asked.turn_id) == "planned"


async def test_turn_of_another_tenant_is_dropped(db: Database) -> None:
    platform = Platform(db)
    asked = await platform.ask("What is the refund limit?")
    foreign = TurnRequested("evil", asked.conversation_id, asked.turn_id, 3)
    await platform.bus.deliver(foreign)
    assert await platform.state(asked.turn_id) == "requested"
    assert platform.bus.dead_letters == []


class SlowPlanner:
    """Plans by the rules, once both deliveries of a turn are being planned."""

    def __init__(self) -> None:
        self.barrier = asyncio.Barrier(2)

    async def decide(self, situation: Situation, *, tenant: str, turn_id: str) -> Decision:
        await self.barrier.wait()
        return await RulePlanner().decide(situation, tenant=tenant, turn_id=turn_id)


async def test_two_orchestrators_on_one_turn_leave_one_plan(db: Database) -> None:
    planner = SlowPlanner()
    one, other = Platform(db, planner), Platform(db, planner)
    asked = await one.ask("What is the refund limit?")
    await asyncio.gather(one.bus.deliver(asked), other.bus.deliver(asked))
    assert await one.events(asked.turn_id) == ["status", "status", "plan"]
    assert one.bus.dead_letters == other.bus.dead_letters == []


async def test_questions_sent_at_once_are_planned_in_order_each_knowing_the_answer_before(
    db: Database,
) -> None:
    platform = Platform(db)
    first = await platform.ask("When was Acme Corp. founded?")
    second = await platform.ask("Who is its director?")
    await platform.bus.deliver(second)  # the topic has them the other way round
    assert await platform.state(second.turn_id) == "requested"
    await platform.bus.deliver(first)
    async with db.work() as sql:
        await turns.finish(sql, "acme", first.turn_id, turns.Outcome("done", answer="In 1999."))
    assert platform.bus.published.count(second) == 2  # when it was asked, and now
    await platform.bus.deliver(second)
    async with db.reading() as sql:
        plan = turns.plan_of(await turns.load_turn(sql, "acme", second.turn_id))
    assert plan is not None
    assert plan.rewritten_question == "Who is Acme Corp.'s director?"


class CancelledMeanwhile:
    """A planner during whose work the user gives up."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def decide(self, situation: Situation, *, tenant: str, turn_id: str) -> Decision:
        async with self._db.work() as sql:
            await turns.cancel(sql, tenant, turn_id)
        return await RulePlanner().decide(situation, tenant=tenant, turn_id=turn_id)


async def test_turn_cancelled_while_it_is_planned_gets_no_plan(db: Database) -> None:
    platform = Platform(db, CancelledMeanwhile(db))
    asked = await platform.ask("What is the refund limit?")
    await platform.bus.deliver(asked)
    assert await platform.state(asked.turn_id) == "cancelled"
    assert await platform.events(asked.turn_id) == ["status", "done"]
    assert platform.bus.dead_letters == []


async def test_an_event_written_by_another_while_a_turn_is_planned_costs_it_no_plan(
    db: Database,
) -> None:
    class Interrupted(RulePlanner):
        """While it thinks, somebody tells the user that the turn waits."""

        interrupted = False

        async def decide(self, situation: Situation, *, tenant: str, turn_id: str) -> Decision:
            if not self.interrupted:
                self.interrupted = True
                async with db.work() as sql:
                    await turns.append_events(sql, tenant, turn_id, [("status", {})])
            return await super().decide(situation, tenant=tenant, turn_id=turn_id)

    platform = Platform(db, Interrupted())
    asked = await platform.ask("What is the refund limit?")
    await platform.bus.deliver(asked)
    await platform.bus.run_due()
    assert await platform.state(asked.turn_id) == "planned"
    assert await platform.events(asked.turn_id) == ["status", "status", "status", "plan"]
