"""Turn streams on a real server: clients that leave, and many that stay."""

import asyncio
import json

import pytest

from services.gateway.replies import Replies
from tests.integration.gateway.conftest import Front

pytestmark = pytest.mark.integration


async def until_open(replies: Replies, count: int) -> None:
    async with asyncio.timeout(60):
        while replies.open_streams != count:  # noqa: ASYNC110 - nothing to wait on by design
            await asyncio.sleep(0.01)


async def test_a_client_that_leaves_frees_its_stream_and_stops_no_turn(front: Front) -> None:
    turn_id = await front.stage.ask()
    replies = front.stage.gateway.replies
    async with (
        front.client() as client,
        client.stream("GET", f"/v1/turns/{turn_id}/events") as response,
    ):
        first = await anext(response.aiter_text())
        assert json.loads(first.split("data: ")[1])["turn_id"] == turn_id
        await until_open(replies, 1)
    await until_open(replies, 0)
    await front.stage.executor.answer(turn_id)
    async with front.client() as client:
        whole = await client.get(f"/v1/turns/{turn_id}/events")
    assert whole.text.endswith("\n\n")
    assert "event: done" in whole.text


async def test_events_arrive_one_by_one(front: Front) -> None:
    turn_id = await front.stage.ask()
    async with (
        front.client() as client,
        client.stream("GET", f"/v1/turns/{turn_id}/events") as response,
    ):
        lines = response.aiter_lines()
        async for line in lines:
            if line == "id: 1":
                break
        await front.stage.executor.say(turn_id, [("delta", {"text": "soon"})])
        async with asyncio.timeout(60):
            async for line in lines:
                if line.startswith('data: {"text"'):
                    break
        assert line == 'data: {"text":"soon"}'
        await front.stage.executor.end(turn_id)
        assert "event: done" in [line async for line in lines]
