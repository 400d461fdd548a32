"""A stream equals what is stored: whole, cut and resumed, heard or not, once to the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from unittest.mock import patch

import httpx
import pytest
from starlette.types import Message

from libs.storage.sql import Database, UnitOfWork, api_keys, turns
from libs.storage.sql.turn_events import reply_of
from libs.storage.sql.turns import TurnEvent
from libs.web import while_valid
from services.gateway.replies import Replies
from services.gateway.streaming import EventStream, frames
from tests.unit.services.gateway.conftest import SCRIPT, Stage

SSE = {"Accept": "text/event-stream"}


def cut(stream: bytes) -> list[bytes]:
    """Its frames, without heartbeats."""
    return [f + b"\n\n" for f in stream.split(b"\n\n") if f and not f.startswith(b":")]


async def replay(client: httpx.AsyncClient, turn_id: str, after: int) -> bytes:
    headers = {**SSE, "Last-Event-ID": str(after)} if after else SSE
    response = await client.get(f"/v1/turns/{turn_id}/events", headers=headers)
    assert response.status_code == 200
    return response.content


async def live(stage: Stage, turn_id: str, after: int = 0) -> bytes:
    events = stage.gateway.replies.follow("acme", turn_id, after, heartbeat_s=5)
    return b"".join([block async for block in frames(events)])


async def opened(stage: Stage) -> None:
    """Until somebody follows a turn."""
    for _ in range(100_000):
        if stage.gateway.replies.open_streams:
            return
        await asyncio.sleep(0)
    raise AssertionError("no stream was opened")


async def test_a_question_streams_to_its_one_terminal_event(stage: Stage) -> None:
    async with stage.client() as client:
        conversation_id = (await client.post("/v1/conversations")).json()["id"]

        async def answer_the_turn() -> None:
            turn_id = None
            while turn_id is None:
                async with stage.gateway.db.reading() as sql:
                    asked = await turns.list_turns(sql, "acme", conversation_id)
                turn_id = asked[0]["id"] if asked else None
            await stage.executor.answer(turn_id)

        path = f"/v1/conversations/{conversation_id}/turns"
        response, _ = await asyncio.gather(
            client.post(path, json={"text": "What?"}, headers=SSE), answer_the_turn()
        )
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"
    assert "no-transform" in response.headers["cache-control"]
    assert response.headers["content-encoding"] == "identity"  # no proxy packs it
    received = cut(response.content)
    kinds = [f.split(b"\n")[1].removeprefix(b"event: ").decode() for f in received]
    assert kinds == ["status", *(kind for kind, _ in SCRIPT), "done"]
    assert [f.split(b"\n")[0] for f in received] == [b"id: %d" % n for n in range(1, 7)]
    assert b'"turn_id"' in received[0]


async def test_a_stream_cut_anywhere_and_resumed_equals_the_uncut_one(stage: Stage) -> None:
    turn_id = await stage.ask()
    uncut, _ = await asyncio.gather(live(stage, turn_id), stage.executor.answer(turn_id))
    blocks = cut(uncut)
    assert len(blocks) == 6
    async with stage.client() as client:
        for position in range(len(blocks)):
            resumed = await replay(client, turn_id, position)
            assert b"".join(blocks[:position]) + resumed == uncut


async def test_resuming_in_the_middle_of_a_running_turn_goes_on_live(stage: Stage) -> None:
    turn_id = await stage.ask()
    await stage.executor.say(turn_id, SCRIPT[:2])

    async def rest() -> None:
        await stage.executor.say(turn_id, SCRIPT[2:])
        await stage.executor.end(turn_id)

    async with stage.client() as client:
        resumed, uncut, _ = await asyncio.gather(
            replay(client, turn_id, 2), live(stage, turn_id), rest()
        )
    assert b"".join(cut(uncut)[:2]) + resumed == uncut


async def test_a_lost_broker_loses_no_event(stage: Stage) -> None:
    turn_id = await stage.ask()
    polling = asyncio.create_task(stage.gateway.replies.run())
    stream, _ = await asyncio.gather(
        live(stage, turn_id), stage.executor.answer(turn_id, heard=False)
    )
    polling.cancel()
    with suppress(asyncio.CancelledError):
        await polling
    assert len(cut(stream)) == 6


async def test_gaps_repeats_and_disorder_on_the_topic_are_put_right(stage: Stage) -> None:
    turn_id = await stage.ask()
    replies = stage.gateway.replies
    reading = asyncio.create_task(live(stage, turn_id))
    await opened(stage)
    await stage.executor.answer(turn_id, heard=False)
    async with stage.gateway.db.reading() as sql:
        stored = await turns.events_after(sql, "acme", turn_id, 0)
    for event in (stored[3], stored[1], stored[1], stored[5], stored[0]):
        await replies.hear(reply_of("acme", event))
    blocks = cut(await reading)
    assert [b.split(b"\n")[0] for b in blocks] == [b"id: %d" % n for n in range(1, 7)]


async def test_a_reader_far_behind_gets_everything_from_sql(stage: Stage) -> None:
    turn_id = await stage.ask()
    events = stage.gateway.replies.follow("acme", turn_id, 0)
    assert await anext(events) is not None  # and now it reads no more for a long time
    many = [("delta", {"text": str(n)}) for n in range(1_500)]
    async with stage.gateway.db.work() as sql:
        stored = await turns.append_events(sql, "acme", turn_id, many)
    for event in stored:
        await stage.gateway.replies.hear(reply_of("acme", event))
        assert stage.gateway.replies.held_events <= 256
    await stage.executor.end(turn_id)
    seqs = [event.seq async for event in events if event is not None]
    assert seqs == list(range(2, 1_503))


async def test_another_tenants_reply_wakes_nobody(stage: Stage) -> None:
    turn_id = await stage.ask()
    reading = asyncio.create_task(live(stage, turn_id))
    await opened(stage)
    forged = turns.TurnEvent(turn_id, 2, "delta", {"text": "forged"})
    await stage.gateway.replies.hear(reply_of("other", forged))
    await stage.executor.end(turn_id)
    assert b"forged" not in await reading


async def test_silence_is_filled_with_heartbeats(stage: Stage) -> None:
    turn_id = await stage.ask()
    events = stage.gateway.replies.follow("acme", turn_id, 1, heartbeat_s=0.01)
    blocks = frames(events)
    assert await anext(blocks) == b": heartbeat\n\n"
    assert await anext(blocks) == b": heartbeat\n\n"


async def test_leaving_frees_the_stream_and_stops_no_turn(stage: Stage) -> None:
    turn_id = await stage.ask()
    reading = asyncio.create_task(live(stage, turn_id))
    await opened(stage)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert stage.gateway.replies.open_streams == 0
    await stage.executor.answer(turn_id)
    async with stage.client() as client:
        assert (await client.get(f"/v1/turns/{turn_id}")).json()["state"] == "done"


async def test_an_ended_turn_tells_a_client_that_has_it_all_to_stop(stage: Stage) -> None:
    turn_id = await stage.ask()
    await stage.executor.answer(turn_id)
    async with stage.client() as client:
        for after in (6, 7_000):
            response = await client.get(
                f"/v1/turns/{turn_id}/events", headers={"Last-Event-ID": str(after)}
            )
            assert (response.status_code, response.content) == (204, b"")


async def test_an_id_from_the_future_is_taken_as_the_newest(stage: Stage) -> None:
    turn_id = await stage.ask()

    async def end_when_read() -> None:
        await opened(stage)
        await stage.executor.end(turn_id)

    async with stage.client() as client:
        stream, _ = await asyncio.gather(replay(client, turn_id, 99), end_when_read())
    assert [b.split(b"\n")[:2] for b in cut(stream)] == [[b"id: 2", b"event: done"]]


@asynccontextmanager
async def sql_hangs(db: Database) -> AsyncIterator[None]:
    """Whoever wants to read waits."""
    there, reading = asyncio.Event(), db.reading

    @asynccontextmanager
    async def late() -> AsyncIterator[UnitOfWork]:
        await there.wait()
        async with reading() as sql:
            yield sql

    with patch.object(db, "reading", late):
        try:
            yield
        finally:
            there.set()


async def test_heartbeats_go_on_while_sql_hangs_and_nothing_is_missed_after_it(
    stage: Stage,
) -> None:
    db, turn_id = stage.gateway.db, await stage.ask()
    await stage.executor.say(turn_id, SCRIPT, heard=False)
    async with db.reading() as sql:
        caller = await api_keys.authenticate(sql, stage.keys["acme"])
    assert caller is not None
    events = stage.gateway.replies.follow("acme", turn_id, 0, heartbeat_s=0.01)
    async with aclosing(while_valid(frames(events), db, caller, check_s=0.01)) as stream:
        async with sql_hangs(db), asyncio.timeout(60):
            for _ in range(5):
                assert await anext(stream) == b": heartbeat\n\n"
        received: list[bytes] = []
        while len(received) < 1 + len(SCRIPT):
            received += cut(await anext(stream))
        async with sql_hangs(db), asyncio.timeout(60):  # now it is the key that cannot be looked up
            for _ in range(5):
                assert await anext(stream) == b": heartbeat\n\n"
    assert [b.split(b"\n")[0] for b in received] == [b"id: %d" % n for n in range(1, 6)]


async def test_a_stream_that_fails_to_read_sql_goes_on_when_it_is_back(stage: Stage) -> None:
    turn_id = await stage.ask()
    replies = stage.gateway.replies
    events = replies.follow("acme", turn_id, 0, heartbeat_s=0.01)
    while await anext(events) is None:
        pass
    await stage.executor.answer(turn_id, heard=False)
    async with stage.gateway.db.engine.begin() as connection:
        await connection.exec_driver_sql("ALTER TABLE turn_events RENAME TO away")
    waiting = asyncio.create_task(replies.run())
    for _ in range(5):
        assert await anext(events) is None
    async with stage.gateway.db.engine.begin() as connection:
        await connection.exec_driver_sql("ALTER TABLE away RENAME TO turn_events")
    assert [event.seq async for event in events if event is not None] == list(range(2, 7))
    waiting.cancel()
    await asyncio.wait({waiting})


async def told(events: AsyncIterator[TurnEvent | None]) -> TurnEvent:
    """The next event, however many heartbeats go before it."""
    async with asyncio.timeout(60):
        while (event := await anext(events)) is None:
            pass
    return event


@pytest.mark.parametrize(("deaf", "due_s"), [(True, 0.25), (False, 1.0)])
async def test_a_stream_whose_events_go_to_another_replica_looks_into_sql_more_often(
    stage: Stage, deaf: bool, due_s: float
) -> None:
    now = 0.0
    replies = Replies(stage.gateway.db, poll_s=1.0, clock=lambda: now)
    turn_id = await stage.ask()
    events = replies.follow("acme", turn_id, 0, deaf=deaf, heartbeat_s=0.2)
    assert (await told(events)).seq == 1  # what is stored at the opening has been read
    assert await anext(events) is None
    await stage.executor.say(turn_id, SCRIPT[:1], heard=False)
    now = due_s - 0.01
    await replies.poll()
    assert await anext(events) is None
    now = due_s
    await replies.poll()
    assert (await told(events)).seq == 2
    # What only SQL had tells that nothing is heard of this turn.
    await stage.executor.say(turn_id, SCRIPT[1:2], heard=False)
    now = due_s + 0.25
    await replies.poll()
    assert (await told(events)).seq == 3
    await events.aclose()


async def test_a_look_into_sql_that_ends_while_the_client_is_busy_is_not_the_last_one(
    stage: Stage,
) -> None:
    now = 0.0
    db = stage.gateway.db
    replies, reading, may_read = Replies(db, clock=lambda: now), db.reading, asyncio.Event()

    @asynccontextmanager
    async def late() -> AsyncIterator[UnitOfWork]:
        await may_read.wait()
        async with reading() as sql:
            yield sql

    turn_id = await stage.ask()
    with patch.object(db, "reading", late):
        events = replies.follow("acme", turn_id, 1, heartbeat_s=0.05)
        assert await anext(events) is None  # SQL is being asked
        await stage.executor.say(turn_id, SCRIPT[:1], heard=False)
        async with reading() as sql:
            [event] = await turns.events_after(sql, "acme", turn_id, 1)
        await replies.hear(reply_of("acme", event))
        assert (await told(events)).seq == 2
        may_read.set()
        await asyncio.sleep(0.2)  # nobody takes the next one, and SQL answers
    assert await anext(events) is None
    await stage.executor.say(turn_id, SCRIPT[1:2], heard=False)
    now = 60.0
    await replies.poll()
    assert (await told(events)).seq == 3
    await events.aclose()


async def test_a_client_that_takes_nothing_is_dropped(stage: Stage) -> None:
    turn_id = await stage.ask()
    events = stage.gateway.replies.follow("acme", turn_id, 0, heartbeat_s=0.01)
    sent: list[str] = []

    async def send(message: Message) -> None:
        sent.append(message["type"])
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()  # its receive window is full

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("it neither reads nor leaves")

    response = EventStream(frames(events), send_timeout_s=0.05)
    await response({"type": "http", "path": "/"}, receive, send)
    assert sent == ["http.response.start", "http.response.body"]
    assert stage.gateway.replies.open_streams == 0
