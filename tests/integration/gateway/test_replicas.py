"""Two replicas over one database: a stream cut on one goes on at the other as if uncut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace

import httpx
import pytest

from libs.storage.sql import turns
from services.gateway.app import create_app
from services.gateway.replies import Replies
from tests.integration.gateway.conftest import Front
from tests.integration.gateway.serving import served
from tests.unit.services.gateway.conftest import SCRIPT

pytestmark = pytest.mark.integration

SSE = {"Accept": "text/event-stream"}
TURN = (*SCRIPT[:3], ("restarted", {"reason": "taken-over"}), *SCRIPT[1:])
EVENTS = len(TURN) + 2  # the first status and the end


@dataclass
class Pair:
    """The first replica hears what the executor says, the second reads SQL alone."""

    front: Front
    first: httpx.AsyncClient
    second: httpx.AsyncClient

    async def ask(self) -> str:
        return await self.front.stage.ask()

    async def say(self, turn_id: str, start: int, stop: int) -> None:
        """Write the events with seqs start, …, stop - 1 that are not there yet."""
        executor = self.front.stage.executor
        await executor.say(turn_id, TURN[max(start - 2, 0) : max(stop - 2, 0)])
        if stop > EVENTS:
            await executor.end(turn_id)


@pytest.fixture
async def pair(front: Front) -> AsyncIterator[Pair]:
    other = Replies(front.stage.gateway.db, poll_s=0.05)
    polling = asyncio.create_task(other.run())
    replica = replace(front.stage.gateway, replies=other, reply_partition=4)
    async with (
        served(create_app(replica)) as url,
        front.client() as first,
        httpx.AsyncClient(base_url=url, headers=first.headers, timeout=20) as second,
    ):
        yield Pair(front, first, second)
    polling.cancel()
    with suppress(asyncio.CancelledError):
        await polling


async def read(
    client: httpx.AsyncClient, turn_id: str, after: int = 0, count: int = EVENTS
) -> bytes:
    """At most `count` events after `after`, without heartbeats; then the connection is cut."""
    blocks = b""
    headers = SSE | ({"Last-Event-ID": str(after)} if after else {})
    async with client.stream("GET", f"/v1/turns/{turn_id}/events", headers=headers) as response:
        async for piece in response.aiter_bytes():
            blocks += piece
            whole = [b + b"\n\n" for b in blocks.split(b"\n\n")[:-1] if not b.startswith(b":")]
            if len(whole) >= count:
                return b"".join(whole[:count])
    return b"".join(whole)


@pytest.mark.parametrize("position", range(1, EVENTS))
async def test_a_live_stream_cut_after_an_event_and_resumed_elsewhere_equals_the_uncut_one(
    pair: Pair, position: int
) -> None:
    turn_id = await pair.ask()
    uncut = asyncio.create_task(read(pair.first, turn_id))
    beginning = asyncio.create_task(read(pair.first, turn_id, count=position))
    await pair.say(turn_id, 2, position + 1)
    cut = await beginning
    rest = asyncio.create_task(read(pair.second, turn_id, after=position))
    await pair.say(turn_id, position + 1, EVENTS + 1)
    assert cut + await rest == await uncut
    assert (await uncut).count(b"\n\n") == EVENTS
    # Long afterwards it is the same, on either replica.
    for client in (pair.first, pair.second):
        assert cut + await read(client, turn_id, after=position) == await uncut


async def test_two_devices_see_the_same_turn_and_a_waiting_one_opens_at_once(pair: Pair) -> None:
    running = await pair.ask()
    async with pair.front.stage.gateway.db.work() as sql:
        conversation_id = (await turns.load_turn(sql, "acme", running))["conversation_id"]
        waiting = await turns.create_turn(sql, "acme", conversation_id, "And then?", 3)
    queued = asyncio.create_task(read(pair.second, waiting["id"]))
    assert b'"status":"requested"' in await read(pair.second, waiting["id"], count=1)
    devices = [asyncio.create_task(read(c, running)) for c in (pair.first, pair.second)]
    await pair.say(running, 2, EVENTS + 1)
    one, other = [await device for device in devices]
    assert one == other
    assert not queued.done()
    await pair.front.stage.executor.answer(waiting["id"])
    assert (await queued).count(b"event: done") == 1


async def test_questions_sent_at_once_to_two_replicas_get_places_of_their_own(pair: Pair) -> None:
    conversation = (await pair.first.post("/v1/conversations")).json()["id"]
    path = f"/v1/conversations/{conversation}/turns"
    asking = [
        asyncio.create_task(client.post(path, json={"text": f"{n}?"}))
        for n in range(4)
        for client in (pair.first, pair.second)
    ]
    answered: list[str] = []
    while len(answered) < len(asking):
        async with pair.front.stage.gateway.db.reading() as sql:
            asked = await turns.list_turns(sql, "acme", conversation)
        for turn in asked:
            if turn["state"] == "requested":
                await pair.front.stage.executor.answer(turn["id"])
                answered.append(turn["id"])
    results = [(await one).json() for one in asking]
    assert {result["state"] for result in results} == {"done"}
    shown = (await pair.second.get(f"/v1/conversations/{conversation}")).json()["turns"]
    assert [turn["turn_id"] for turn in shown] == answered
