"""A turn's life: one order of events, one terminal event, one tenant."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import RowMapping, select

from libs.contracts import (
    ConversationExecutionPlan,
    ExecutionMode,
    TurnCompleted,
    TurnControl,
    TurnPlanned,
    TurnRequested,
)
from libs.kernel import ConflictError, NotFoundError
from libs.storage.sql import Database, turns
from libs.storage.sql.tables import turn_events
from libs.storage.sql.turn_events import TurnEvent, insert_events, reply_of
from libs.storage.sql.work import UnitOfWork
from tests.outbox import announced

PLAN = ConversationExecutionPlan(ExecutionMode.RAG_CHAT, "What is a sluice?")
DONE = turns.Outcome("done", answer="A gate [1].", citations=[{"n": 1}], usage={"calls": 1})


async def ask(db: Database, tenant: str = "acme", text: str = "What is a sluice?") -> str:
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, tenant)
        return str((await turns.create_turn(sql, tenant, conversation_id, text, 3))["id"])


async def stored(db: Database, turn_id: str) -> list[tuple[int, str]]:
    async with db.reading() as sql:
        return [(e.seq, e.type) for e in await turns.events_after(sql, "acme", turn_id, 0)]


async def test_a_new_turn_is_announced_and_its_first_event_names_it(db: Database) -> None:
    turn_id = await ask(db)
    async with db.reading() as sql:
        turn = await turns.load_turn(sql, "acme", turn_id)
        events = await turns.events_after(sql, "acme", turn_id, 0)
    assert (turn["seq"], turn["state"], turn["reply_partition"]) == (1, "requested", 3)
    assert [(e.seq, e.type, e.data["turn_id"]) for e in events] == [(1, "status", turn_id)]
    assert await announced(db) == [TurnRequested("acme", turn["conversation_id"], turn_id, 3)]


async def test_turns_of_a_conversation_are_numbered_even_when_asked_at_once(db: Database) -> None:
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, "acme")

    async def one(text: str) -> int:
        async def create(sql: UnitOfWork) -> RowMapping:
            return await turns.create_turn(sql, "acme", conversation_id, text, 0)

        return int((await db.repeated(create, tries=8))["seq"])

    seqs = await asyncio.gather(*(one(f"question {i}") for i in range(8)))
    assert sorted(seqs) == list(range(1, 9))


async def test_a_plan_is_set_once_and_announced_once(db: Database) -> None:
    turn_id = await ask(db)
    async with db.work() as sql:
        assert await turns.set_plan(sql, "acme", turn_id, PLAN)
        assert not await turns.set_plan(sql, "acme", turn_id, PLAN)
        turn = await turns.load_turn(sql, "acme", turn_id)
    assert turns.plan_of(turn) == PLAN
    planned = [e for e in await announced(db) if isinstance(e, TurnPlanned)]
    assert planned == [TurnPlanned("acme", turn["conversation_id"], turn_id, 3, PLAN)]


async def test_events_go_on_from_the_stored_seq(db: Database) -> None:
    turn_id = await ask(db)
    async with db.work() as sql:
        first = await turns.append_events(sql, "acme", turn_id, [("plan", {}), ("delta", {"a": 1})])
        second = await turns.append_events(sql, "acme", turn_id, [("delta", {})], after=3)
        assert await turns.append_events(sql, "acme", turn_id, []) == []
    assert [e.seq for e in first + second] == [2, 3, 4]
    assert first[1] == TurnEvent(turn_id, 3, "delta", {"a": 1})
    async with db.reading() as sql:
        assert await turns.last_seqs(sql, [turn_id, "unknown"]) == {turn_id: 4}


async def test_of_two_appenders_that_know_the_same_seq_one_fails(db: Database) -> None:
    turn_id = await ask(db)

    async def append(text: str) -> str:
        async with db.work() as sql:
            await turns.append_events(sql, "acme", turn_id, [("delta", {"text": text})], after=1)
        return text

    results = await asyncio.gather(append("a"), append("b"), return_exceptions=True)
    assert [type(r) for r in results if not isinstance(r, str)] == [ConflictError]
    assert await stored(db, turn_id) == [(1, "status"), (2, "delta")]


async def test_a_taken_seq_is_a_conflict_even_without_the_check(db: Database) -> None:
    turn_id = await ask(db)
    with pytest.raises(ConflictError):
        async with db.work() as sql:
            await insert_events(sql, turn_id, 0, [("delta", {})])
    assert await stored(db, turn_id) == [(1, "status")]


async def test_a_turn_ends_once_however_many_try(db: Database) -> None:
    turn_id = await ask(db)

    async def end(state: str) -> bool:
        async with db.work() as sql:
            return bool(await turns.finish(sql, "acme", turn_id, turns.Outcome(state)))

    ended = await asyncio.gather(*(end(s) for s in ("done", "failed", "cancelled", "done")))
    assert sum(ended) == 1
    async with db.reading() as sql:
        events = await turns.events_after(sql, "acme", turn_id, 0)
        turn = await turns.load_turn(sql, "acme", turn_id)
    assert [e.terminal for e in events] == [False, True]
    completed = [e for e in await announced(db) if isinstance(e, TurnCompleted)]
    assert completed == [TurnCompleted("acme", turn["conversation_id"], turn_id, turn["state"])]


async def test_the_terminal_event_shows_the_stored_result(db: Database) -> None:
    turn_id = await ask(db)
    async with db.work() as sql:
        await turns.set_plan(sql, "acme", turn_id, PLAN)
        await turns.checkpoint(sql, "acme", turn_id, {"step": 2})
        terminal = await turns.finish(sql, "acme", turn_id, DONE)
        turn = await turns.load_turn(sql, "acme", turn_id)
    assert terminal is not None
    assert (terminal.seq, terminal.type, terminal.data) == (2, "done", turns.result(turn))
    assert (turn["answer"], turn["citations"], turn["checkpoint"]) == (
        "A gate [1].",
        [{"n": 1}],
        None,
    )
    assert '"answer":"A gate [1]."' in reply_of("acme", terminal).data


async def test_a_failure_ends_in_an_error_event(db: Database) -> None:
    turn_id = await ask(db)
    error = {"reason": "budget-exceeded", "detail": "Ask again with a shorter question."}
    async with db.work() as sql:
        terminal = await turns.finish(sql, "acme", turn_id, turns.Outcome("failed", error=error))
    assert terminal is not None
    assert (terminal.type, terminal.data["error"]) == ("error", error)


async def test_nothing_is_appended_or_changed_after_the_end(db: Database) -> None:
    turn_id = await ask(db)
    async with db.work() as sql:
        await turns.finish(sql, "acme", turn_id, DONE)
        assert not await turns.set_plan(sql, "acme", turn_id, PLAN)
        assert not await turns.checkpoint(sql, "acme", turn_id, {})
        assert await turns.cancel(sql, "acme", turn_id) is None
    with pytest.raises(ConflictError):
        async with db.work() as sql:
            await turns.append_events(sql, "acme", turn_id, [("delta", {})])


async def test_only_finish_writes_terminal_events(db: Database) -> None:
    turn_id = await ask(db)
    async with db.work() as sql:
        with pytest.raises(ValueError, match="finish"):
            await turns.append_events(sql, "acme", turn_id, [("done", {})])
        with pytest.raises(ValueError, match="final"):
            await turns.finish(sql, "acme", turn_id, turns.Outcome("planned"))


async def test_cancelling_ends_the_turn_with_what_stands_and_tells_everybody(
    db: Database,
) -> None:
    turn_id = await ask(db)
    async with db.work() as sql:
        assert not await turns.should_stop(sql, "acme", turn_id)
        void, stands = ("delta", {"text": "void"}), [("delta", {"text": t}) for t in ("It ", "is ")]
        await turns.append_events(sql, "acme", turn_id, [void, ("restarted", {}), *stands])
        terminal = await turns.cancel(sql, "acme", turn_id)
        assert await turns.should_stop(sql, "acme", turn_id)
    assert terminal is not None
    assert (terminal.type, terminal.data["state"], terminal.data["answer"]) == (
        "done",
        "cancelled",
        "It is",
    )
    assert (await announced(db))[-1] == TurnControl("acme", turn_id, "cancel")


async def test_the_end_of_a_turn_announces_the_next_of_its_conversation(db: Database) -> None:
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, "acme")
        asked = [await turns.create_turn(sql, "acme", conversation_id, t, 7) for t in "abc"]
        assert [await turns.waits_for_another(sql, turn) for turn in asked] == [False, True, True]
        assert [row["id"] for row in await turns.unfinished(sql, "", 9)] == [asked[0]["id"]]
        await turns.finish(sql, "acme", asked[0]["id"], DONE)
        assert [await turns.waits_for_another(sql, turn) for turn in asked[1:]] == [False, True]
    following = TurnRequested("acme", conversation_id, asked[1]["id"], 7)
    assert (await announced(db)).count(following) == 2


async def test_history_holds_answered_turns_oldest_first(db: Database) -> None:
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, "acme")
        for text in ("one", "two", "three", "four"):
            turn = await turns.create_turn(sql, "acme", conversation_id, text, 0)
            if text != "two":
                await turns.finish(sql, "acme", turn["id"], DONE)
    async with db.reading() as sql:
        last = await turns.history(sql, "acme", conversation_id, 2)
        before = await turns.history(sql, "acme", conversation_id, 9, before_seq=4)
        every = await turns.list_turns(sql, "acme", conversation_id)
    assert [t["text"] for t in last] == ["three", "four"]
    assert [t["text"] for t in before] == ["one", "three"]
    assert [t["text"] for t in every] == ["one", "two", "three", "four"]


async def test_the_pending_question_is_kept_until_cleared(db: Database) -> None:
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, "acme")
        await turns.set_pending_question(sql, "acme", conversation_id, "sales of which month?")
        kept = await turns.pending_question(sql, "acme", conversation_id)
        await turns.set_pending_question(sql, "acme", conversation_id, None)
        assert (kept, await turns.pending_question(sql, "acme", conversation_id)) == (
            "sales of which month?",
            None,
        )


async def test_another_tenant_finds_nothing(db: Database) -> None:
    turn_id = await ask(db)
    async with db.reading() as sql:
        conversation_id = (await turns.load_turn(sql, "acme", turn_id))["conversation_id"]
    calls: list[Callable[[UnitOfWork], Awaitable[object]]] = [
        lambda sql: turns.load_turn(sql, "other", turn_id),
        lambda sql: turns.create_turn(sql, "other", conversation_id, "mine?", 0),
        lambda sql: turns.append_events(sql, "other", turn_id, [("delta", {})]),
        lambda sql: turns.finish(sql, "other", turn_id, DONE),
        lambda sql: turns.set_plan(sql, "other", turn_id, PLAN),
        lambda sql: turns.cancel(sql, "other", turn_id),
        lambda sql: turns.should_stop(sql, "other", turn_id),
        lambda sql: turns.load_conversation(sql, "other", conversation_id),
        lambda sql: turns.pending_question(sql, "other", conversation_id),
        lambda sql: turns.set_pending_question(sql, "other", conversation_id, "mine?"),
    ]
    for call in calls:
        with pytest.raises(NotFoundError):
            async with db.work() as sql:
                await call(sql)
    async with db.work() as sql:
        assert not await turns.checkpoint(sql, "other", turn_id, {})
        assert await turns.events_after(sql, "other", turn_id, 0) == []
        assert await turns.history(sql, "other", conversation_id, 9) == []
        assert await turns.list_turns(sql, "other", conversation_id) == []
        assert len(await sql.rows(select(turn_events))) == 1
