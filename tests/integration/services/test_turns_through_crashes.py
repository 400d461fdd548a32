"""Questions through real orchestrator and executor processes that are killed or stopped.

These take long, as processes start, join groups and, with a model that hangs, drain to the bound.
"""

import asyncio
import random
import signal
import threading
from typing import Any

from sqlalchemy import select

from libs.storage.sql import Database, turns
from libs.storage.sql.tables import turn_events
from tests.integration.services.test_executor_process import (
    ANSWER,
    Executors,
    bootstrap,
    db,
    eventually,
    executors,
    llm,
)
from tests.standins.llm import LlmServer, Scene, plan
from tests.unit.services.executor.conversation import Seen, seen

__all__ = ["bootstrap", "db", "executors", "llm"]

ORCHESTRATOR = "services.orchestrator"
QUESTION = "What is the refund limit?"

PLANNED = plan(
    execution_mode="RAG_CHAT",
    rewritten_question=QUESTION,
    sub_questions=[],
    knowledge_domains=[],
    clarify_question=None,
)


async def conversation(db: Database) -> str:
    async with db.work() as sql:
        return await turns.create_conversation(sql, "acme")


async def ask(db: Database, conversation_id: str) -> str:
    async with db.work() as sql:
        turn = await turns.create_turn(sql, "acme", conversation_id, QUESTION, 2)
    return str(turn["id"])


async def at(db: Database, turn_id: str, kind: str) -> int:
    """When the turn's first event of this type was written, microseconds."""
    async with db.reading() as sql:
        found = select(turn_events.c.at).where(
            turn_events.c.turn_id == turn_id, turn_events.c.type == kind
        )
        return int(await sql.scalar(found.order_by(turn_events.c.seq).limit(1)))


async def over(db: Database, turn_id: str) -> Seen:
    """The turn at its end, which is whole."""

    async def is_over() -> bool:
        return (await seen(db, turn_id)).end.terminal

    await eventually(is_over, within_s=120)
    turn = await seen(db, turn_id)
    turn.check_whole()
    return turn


def makes_plans(body: dict[str, Any]) -> bool:
    return "response_format" in body


async def test_a_turn_whose_orchestrator_is_killed_is_planned_once_and_one_asked_with_it_follows(
    db: Database, llm: LlmServer, executors: Executors
) -> None:
    hanging = Scene(PLANNED.pieces, first_pause_s=3600)
    llm.play(hanging, PLANNED, Scene(ANSWER), PLANNED, Scene(ANSWER))
    asked_in = await conversation(db)
    first = await ask(db, asked_in)
    second = await ask(db, asked_in)
    killed = await executors.start(ORCHESTRATOR)

    async def is_planning() -> bool:
        return bool(llm.requests)

    await eventually(is_planning, within_s=120)
    killed.send_signal(signal.SIGKILL)
    await killed.wait()
    await executors.start(ORCHESTRATOR)
    await executors.start()
    for turn_id in (first, second):
        turn = await over(db, turn_id)
        assert (turn.types.count("plan"), turn.text) == (1, "".join(ANSWER))
    assert [makes_plans(body) for body in llm.requests] == [True, True, False, True, False]
    assert await at(db, first, "done") <= await at(db, second, "plan")


async def test_processes_stopped_at_any_moment_of_a_turn_end_cleanly_and_others_finish_it(
    db: Database, llm: LlmServer, executors: Executors
) -> None:
    hanging = threading.Event()
    moments = random.Random(1)  # noqa: S311 - a schedule that can be played again

    def scene(body: dict[str, Any]) -> Scene:
        if makes_plans(body):
            return Scene(PLANNED.pieces, first_pause_s=0.3)
        return Scene(ANSWER, pause_s=0.3, hang_after=1 if hanging.is_set() else None)

    asked: list[str] = []
    with LlmServer(scene) as server:
        executors.use(server)
        for hangs in (False, True):  # a model that says no more holds its turn until it is cut off
            if hangs:
                hanging.set()
            asked.extend([await ask(db, await conversation(db)) for _ in range(4)])
            running = [await executors.start(ORCHESTRATOR), await executors.start()]
            enough = await count(db, asked) + moments.randrange(1, 24)

            await has(db, asked, enough)
            for process in running:
                process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                assert [await process.wait() for process in running] == [0, 0]
        hanging.clear()
        await executors.start(ORCHESTRATOR)
        await executors.start()
        for turn_id in asked:
            turn = await over(db, turn_id)
            assert (turn.turn["state"], turn.types.count("plan")) == ("done", 1)
    assert "Traceback" not in executors.log.read_text()


async def has(db: Database, turn_ids: list[str], enough: int) -> None:
    """Wait for so many events."""

    async def is_enough() -> bool:
        return await count(db, turn_ids) >= enough

    await eventually(is_enough, within_s=120)


async def count(db: Database, turn_ids: list[str]) -> int:
    """Events of these turns."""
    async with db.reading() as sql:
        return sum((await turns.last_seqs(sql, turn_ids)).values())
