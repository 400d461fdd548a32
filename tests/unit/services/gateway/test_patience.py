"""A turn that nobody works on tells its user why, and ends with an error when it took too long."""

from typing import Any

import pytest
from sqlalchemy import update

from libs.contracts import TurnCompleted
from libs.kernel import new_id, now_us
from libs.storage.sql import leases, turns, workers
from libs.storage.sql.tables import turns as turns_table
from services.gateway.patience import Patience
from services.gateway.stuck import StuckReader
from tests.outbox import emitted
from tests.unit.services.gateway.conftest import Stage

GIVE_UP_S = 100.0


@pytest.fixture
def patience(stage: Stage) -> Patience:
    gateway = stage.gateway
    stuck = StuckReader(gateway.db, gateway.backlogs)
    return Patience(gateway.db, stuck, gateway.announce, give_up_after_s=GIVE_UP_S)


async def aged(stage: Stage, turn_id: str, seconds: float) -> None:
    """Its last progress was so long ago."""
    async with stage.gateway.db.work() as sql:
        at = now_us() - int(seconds * 1e6)
        await sql.execute(
            update(turns_table).where(turns_table.c.id == turn_id).values(updated_at=at)
        )


async def events(stage: Stage, turn_id: str) -> list[tuple[str, dict[str, Any]]]:
    async with stage.gateway.db.reading() as sql:
        stored = await turns.events_after(sql, "acme", turn_id, 1)
    return [(event.type, dict(event.data)) for event in stored]


async def works(stage: Stage, service: str, *missing: str) -> workers.Worker:
    worker = workers.Worker(new_id(), service, "here", 1, now_us())
    async with stage.gateway.db.work() as sql:
        await workers.beat(sql, worker, list(missing))
    return worker


async def test_a_waiting_turn_says_what_it_waits_for_once_and_again_when_that_changes(
    stage: Stage, patience: Patience
) -> None:
    turn_id = await stage.ask()
    await patience.look()
    assert await events(stage, turn_id) == []  # it was asked just now
    await aged(stage, turn_id, 20)
    await patience.look()
    await patience.look()
    worker = await works(stage, "orchestrator", "kafka")
    await patience.look()
    async with stage.gateway.db.work() as sql:
        await workers.beat(sql, worker, [])
    await patience.look()
    told = await events(stage, turn_id)
    assert [(kind, data["status"], data["for"]) for kind, data in told] == [
        ("status", "waiting", ["orchestrator"]),
        ("status", "waiting", ["kafka"]),
        ("status", "waiting", []),
    ]
    assert [reply.seq for reply, _ in stage.announced] == [2, 3, 4]
    assert {partition for _, partition in stage.announced} == {3}


async def test_a_turn_without_progress_for_too_long_ends_with_an_error_that_says_why(
    stage: Stage, patience: Patience
) -> None:
    turn_id = await stage.ask()
    await works(stage, "orchestrator", "sql")
    await aged(stage, turn_id, GIVE_UP_S + 1)
    await patience.look()
    await patience.look()
    ((kind, data),) = await events(stage, turn_id)
    assert (kind, data["state"]) == ("error", "failed")
    assert data["error"]["reason"] == "no-answer-in-time"
    assert "waited for sql" in data["error"]["detail"]
    async with stage.client() as client:
        assert (await client.get(f"/v1/turns/{turn_id}")).json()["error"] == data["error"]
    left = [event for _, event in await emitted(stage.gateway.db)]
    assert [event.state for event in left if isinstance(event, TurnCompleted)] == ["failed"]


async def test_the_next_question_of_the_conversation_is_announced_when_one_was_given_up(
    stage: Stage, patience: Patience
) -> None:
    turn_id = await stage.ask()
    async with stage.gateway.db.work() as sql:
        conversation_id = (await turns.load_turn(sql, "acme", turn_id))["conversation_id"]
        following = await turns.create_turn(sql, "acme", conversation_id, "And then?", 3)
    await aged(stage, following["id"], 20)
    await aged(stage, turn_id, GIVE_UP_S + 1)
    await patience.look()
    assert await events(stage, following["id"]) == []  # it waited for the other, not for a service
    await patience.look()
    assert [data["status"] for _, data in await events(stage, following["id"])] == ["waiting"]


async def test_a_turn_in_work_is_left_alone_however_long_it_takes(
    stage: Stage, patience: Patience
) -> None:
    turn_id = await stage.ask()
    await aged(stage, turn_id, 10 * GIVE_UP_S)
    async with stage.gateway.db.work() as sql:
        assert await leases.acquire(sql, f"turn:{turn_id}", "an executor", ttl_s=60)
    await patience.look()
    assert await events(stage, turn_id) == []


async def test_a_worker_that_comes_after_a_waiting_status_answers_as_ever(
    stage: Stage, patience: Patience
) -> None:
    turn_id = await stage.ask()
    await aged(stage, turn_id, 20)
    await patience.look()
    async with stage.gateway.db.work() as sql:
        assert await leases.acquire(sql, f"turn:{turn_id}", "an executor", ttl_s=60)
    await stage.executor.answer(turn_id)
    assert [kind for kind, _ in await events(stage, turn_id)][-1] == "done"
