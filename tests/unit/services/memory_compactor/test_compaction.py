"""Memories catch up with SQL: lost, doubled and late events make no difference."""

from sqlalchemy import update

from libs.contracts import MemoryCompacted, TurnCompleted, decode, encode
from libs.contracts.memory import ConversationMemory
from libs.storage.sql import Database, OutboxRow, turns
from libs.storage.sql.memories import load_memory
from libs.storage.sql.tables import memories
from services.memory_compactor.agents import on_completed, on_timer


async def conversation(db: Database, *, memory: str = "window") -> str:
    async with db.work() as sql:
        return await turns.create_conversation(sql, "acme", memory=memory)


async def asked(db: Database, conversation_id: str, text: str) -> str:
    async with db.work() as sql:
        return str((await turns.create_turn(sql, "acme", conversation_id, text, 0))["id"])


async def ended(db: Database, turn_id: str, state: str = "done") -> TurnCompleted:
    error = {"reason": "x", "detail": ""} if state == "failed" else None
    async with db.work() as sql:
        await turns.finish(
            sql, "acme", turn_id, turns.Outcome(state, answer="An answer.", error=error)
        )
        turn = await turns.load_turn(sql, "acme", turn_id)
    return TurnCompleted("acme", turn["conversation_id"], turn_id, state)


async def memory_of(db: Database, conversation_id: str) -> ConversationMemory:
    async with db.reading() as sql:
        return await load_memory(sql, "acme", conversation_id)


def announcements(db: Database) -> list[MemoryCompacted]:
    found: list[MemoryCompacted] = []

    async def keep(rows: list[OutboxRow]) -> None:
        events = [decode(row.record.value) for row in rows]
        found.extend(event for event in events if isinstance(event, MemoryCompacted))

    db.after_commit = keep  # type: ignore[assignment]
    return found


async def test_completed_turn_is_folded_and_announced_once(db: Database) -> None:
    announced = announcements(db)
    talk = await conversation(db)
    event = await ended(db, await asked(db, talk, "What is the limit?"))
    await on_completed(encode(event), db)
    await on_completed(encode(event), db)
    memory = await memory_of(db, talk)
    assert [(e.seq, e.question, e.answer) for e in memory.window] == [
        (1, "What is the limit?", "An answer.")
    ]
    assert announced == [MemoryCompacted("acme", talk, 1)]


async def test_lost_event_is_caught_up_by_the_next(db: Database) -> None:
    talk = await conversation(db)
    await ended(db, await asked(db, talk, "first"))
    event = await ended(db, await asked(db, talk, "second"), state="failed")
    await on_completed(encode(event), db)
    memory = await memory_of(db, talk)
    assert [(e.question, e.answer) for e in memory.window] == [
        ("first", "An answer."),
        ("second", ""),
    ]


async def test_lost_event_without_a_next_is_caught_up_by_the_timer(db: Database) -> None:
    talk, silent = await conversation(db), await conversation(db, memory="none")
    await ended(db, await asked(db, talk, "first"))
    await ended(db, await asked(db, silent, "first"))
    await on_timer(db)
    assert (await memory_of(db, talk)).folded_turn_seq == 1
    assert (await memory_of(db, silent)) == ConversationMemory()
    announced = announcements(db)
    await on_timer(db)
    assert announced == []


async def test_running_turn_holds_later_ones_back(db: Database) -> None:
    talk = await conversation(db)
    running = await asked(db, talk, "first")
    later = await ended(db, await asked(db, talk, "second"))
    await on_completed(encode(later), db)
    assert (await memory_of(db, talk)).folded_turn_seq == 0
    await on_completed(encode(await ended(db, running)), db)
    assert [e.question for e in (await memory_of(db, talk)).window] == ["first", "second"]


async def test_long_conversation_is_folded_in_one_go(db: Database) -> None:
    talk = await conversation(db, memory="summary")
    for i in range(9):
        event = await ended(db, await asked(db, talk, f"question {i}"))
    await on_completed(encode(event), db)
    memory = await memory_of(db, talk)
    assert (memory.folded_turn_seq, len(memory.window)) == (9, 4)
    assert len(memory.summary.splitlines()) == 5


async def test_bytes_that_are_no_event_and_foreign_conversations_change_nothing(
    db: Database,
) -> None:
    talk = await conversation(db)
    await ended(db, await asked(db, talk, "first"))
    await on_completed(b"\x00garbage", db)
    await on_completed(encode(TurnCompleted("evil", talk, "t", "done")), db)
    async with db.reading() as sql:
        assert await load_memory(sql, "evil", talk) == ConversationMemory()


async def test_a_conversation_that_cannot_be_folded_does_not_block_the_others(
    db: Database,
) -> None:
    talks = [await conversation(db) for _ in range(3)]
    for talk in talks:
        await ended(db, await asked(db, talk, "What is the limit?"))
        await on_timer(db)
        await ended(db, await asked(db, talk, "And today?"))
    bad = min(talks)  # the first in order
    async with db.work() as sql:
        unreadable = update(memories).where(memories.c.conversation_id == bad)
        await sql.execute(unreadable.values(window=[{"nonsense": 1}]))
    await on_timer(db)
    for talk in set(talks) - {bad}:
        assert (await memory_of(db, talk)).folded_turn_seq == 2
