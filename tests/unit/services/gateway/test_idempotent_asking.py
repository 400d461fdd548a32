"""A repeat with the same Idempotency-Key gets what the first request made."""

import asyncio

import httpx
from sqlalchemy import select

from libs.contracts import TurnRequested, decode
from libs.storage.sql.tables import conversations, outbox, turns
from tests.unit.services.gateway.conftest import DONE, SCRIPT, Stage
from tests.waiting import until

KEY = {"Idempotency-Key": "ask-1"}
SSE = {"Accept": "text/event-stream"}


async def turn_ids(stage: Stage) -> list[str]:
    async with stage.gateway.db.reading() as sql:
        return [row["id"] for row in await sql.rows(select(turns.c.id).order_by(turns.c.seq))]


async def first_turn(stage: Stage) -> str:
    """Its id, once it was asked."""
    await asked(stage, 1)
    return (await turn_ids(stage))[0]


async def asked(stage: Stage, count: int) -> None:
    """Until so many questions were stored."""

    async def stored() -> bool:
        return len(await turn_ids(stage)) == count

    await until(stored)


async def times_requested(stage: Stage) -> int:
    async with stage.gateway.db.reading() as sql:
        rows = await sql.rows(select(outbox.c.value))
    return sum(isinstance(decode(row["value"]), TurnRequested) for row in rows)


async def conversation(client: httpx.AsyncClient) -> str:
    return f"/v1/conversations/{(await client.post('/v1/conversations')).json()['id']}/turns"


async def test_a_question_that_is_sent_again_is_asked_once(stage: Stage) -> None:
    async with stage.client() as client:
        path = await conversation(client)
        asking = asyncio.create_task(client.post(path, json={"text": "What?"}, headers=KEY | SSE))
        turn_id = await first_turn(stage)
        await stage.executor.say(turn_id, SCRIPT[:2])
        again = asyncio.create_task(client.post(path, json={"text": " What?"}, headers=KEY | SSE))
        await until(lambda: stage.gateway.replies.open_streams == 2)
        await stage.executor.say(turn_id, SCRIPT[2:])
        await stage.executor.end(turn_id)
        late = await client.post(path, json={"text": "What?"}, headers=KEY)
        first, second = await asking, await again
    assert first.content == second.content
    assert late.json() | {"turn_id": turn_id, "answer": DONE.answer} == late.json()
    assert await turn_ids(stage) == [turn_id]
    assert await times_requested(stage) == 1


async def test_repeats_at_the_same_moment_are_one_question(stage: Stage) -> None:
    async with stage.client() as client:
        path = await conversation(client)
        asking = [
            asyncio.create_task(client.post(path, json={"text": "What?"}, headers=KEY))
            for _ in range(5)
        ]
        turn_id = await first_turn(stage)
        await stage.executor.answer(turn_id)
        answers = [(await one).json() for one in asking]
    assert {answer["turn_id"] for answer in answers} == {turn_id}
    assert await turn_ids(stage) == [turn_id]


async def test_a_repeat_goes_on_after_the_last_event_that_arrived(stage: Stage) -> None:
    async with stage.client() as client:
        path = await conversation(client)
        asking = asyncio.create_task(client.post(path, json={"text": "What?"}, headers=KEY | SSE))
        await stage.executor.answer(await first_turn(stage))
        whole = (await asking).content
        frames = [frame + b"\n\n" for frame in whole.split(b"\n\n") if frame]
        for seen in range(1, len(frames)):
            headers = KEY | SSE | {"Last-Event-ID": str(seen)}
            rest = await client.post(path, json={"text": "What?"}, headers=headers)
            assert b"".join(frames[:seen]) + rest.content == whole
        headers = KEY | SSE | {"Last-Event-ID": str(len(frames))}
        assert (await client.post(path, json={"text": "What?"}, headers=headers)).status_code == 204


async def test_a_key_that_comes_back_with_another_question_is_refused(stage: Stage) -> None:
    async with stage.client() as client:
        path = await conversation(client)
        asking = asyncio.create_task(client.post(path, json={"text": "What?"}, headers=KEY))
        await stage.executor.answer(await first_turn(stage))
        await asking
        other = await client.post(path, json={"text": "Why?"}, headers=KEY)
    assert (other.status_code, other.json()["type"]) == (
        422,
        "urn:sluice:problem:idempotency-key-reused",
    )
    assert "another question" in other.json()["detail"]
    assert await times_requested(stage) == 1


async def test_a_key_belongs_to_one_conversation_of_one_tenant(stage: Stage) -> None:
    async with stage.client() as client, stage.client("other") as foreign:
        asking = [
            asyncio.create_task(
                caller.post(await conversation(caller), json={"text": "What?"}, headers=KEY)
            )
            for caller in (client, client, foreign)
        ]
        await asked(stage, 3)
        for one in asking:
            one.cancel()
    assert len(await turn_ids(stage)) == 3


async def test_a_conversation_that_is_begun_again_is_the_same_one(stage: Stage) -> None:
    body = {"memory": "none"}
    async with stage.client() as client, stage.client("other") as foreign:
        path = "/v1/conversations"
        same = await asyncio.gather(*(client.post(path, json=body, headers=KEY) for _ in range(3)))
        other = await client.post(path, json={"memory": "summary"}, headers=KEY)
        elsewhere = await foreign.post(path, json=body, headers=KEY)
        malformed = await client.post(path, json=body, headers={"Idempotency-Key": "a b"})
    assert [response.status_code for response in same] == [201] * 3
    assert len({response.json()["id"] for response in same}) == 1
    assert (other.status_code, malformed.status_code) == (422, 422)
    assert elsewhere.json()["id"] != same[0].json()["id"]
    async with stage.gateway.db.reading() as sql:
        assert len(await sql.rows(select(conversations.c.id))) == 2
