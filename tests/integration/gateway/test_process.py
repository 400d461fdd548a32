"""The gateway as a process, on a real broker: questions out, replies back, and its end."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from libs.contracts import TurnRequested, to_record
from libs.eventbus import KafkaConnection, Listener
from libs.eventbus.publisher import KafkaPublisher
from libs.storage.sql import turns, workers
from libs.storage.sql.turn_events import reply_of
from tests.broker import stop_broker
from tests.integration.gateway.stack import Stack, running_stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SSE = {"Accept": "text/event-stream"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """One for all tests here, as its start is what takes time; the last test ends it."""
    async with running_stack(tmp_path_factory.mktemp("gateway"), 1) as started:
        yield started


@asynccontextmanager
async def requests_of(bootstrap: str) -> AsyncIterator["asyncio.Queue[TurnRequested]"]:
    """What the orchestrator would be given."""
    heard: asyncio.Queue[TurnRequested] = asyncio.Queue()
    stop = asyncio.Event()
    listener = Listener(KafkaConnection(bootstrap), TurnRequested, heard.put)
    listening = asyncio.create_task(listener.run(stop))
    await listener.ready.wait()
    yield heard
    stop.set()
    await listening


async def test_a_question_goes_out_and_its_answer_comes_back_over_the_broker(
    stack: Stack,
) -> None:
    gateway = stack.replicas[0]
    await gateway.ready_but_for("ingest", "keywords", "milvus")
    path = f"/v1/conversations/{await gateway.conversation()}/turns"
    async with (
        requests_of(stack.broker.bootstrap) as requests,
        KafkaPublisher(KafkaConnection(stack.broker.bootstrap)) as publisher,
        gateway.client.stream("POST", path, json={"text": "What?"}, headers=SSE) as response,
    ):
        async with asyncio.timeout(60):
            request = await requests.get()
        coming = response.aiter_lines()
        lines: list[str] = []
        for n in range(20):
            async with stack.db.work() as sql:
                event = (await turns.append_events(sql, "acme", request.turn_id, [delta(n)]))[0]
            record = to_record(reply_of("acme", event), partition=request.reply_partition)
            await publisher.send(record)
            async with asyncio.timeout(60):
                while f"id: {event.seq}" not in lines:
                    lines.append(await anext(coming))
        async with stack.db.work() as sql:
            end = await turns.finish(sql, "acme", request.turn_id, turns.Outcome("done"))
        assert end is not None
        record = to_record(reply_of("acme", end), partition=request.reply_partition)
        await publisher.send(record)
        lines += [line async for line in coming]
    assert [line for line in lines if line.startswith("id: ")] == [f"id: {n}" for n in range(1, 23)]
    metrics = (await gateway.client.get("/metrics")).text
    # The broker brought them. A look into SQL may find one that is stored and still on its way.
    gaps = re.search(r"^stream_gap_events_total (\S+)$", metrics, re.MULTILINE)
    assert gaps is not None
    assert float(gaps[1]) < 22 / 2


async def test_what_is_missing_is_named(stack: Stack) -> None:
    gateway = stack.replicas[0]
    await gateway.ready_but_for("ingest", "keywords", "milvus")
    lacking = {name: stack.others.pop(name) for name in ("parser", "executor")}
    async with stack.db.work() as sql:
        await workers.leave(sql, lacking["parser"].id)
        await workers.beat(sql, lacking["executor"], ["kafka"])
    await gateway.ready_but_for("executor (kafka)", "ingest", "keywords", "milvus", "parser")
    refused = await gateway.client.post("/v1/search", json={"query": "gate"})
    assert refused.status_code == 503
    assert refused.headers["retry-after"]


async def test_a_stream_outlives_the_broker_and_the_process_ends_in_good_order(
    stack: Stack,
) -> None:
    gateway = stack.replicas[0]
    path = f"/v1/conversations/{await gateway.conversation()}/turns"
    async with gateway.client.stream("POST", path, json={"text": "What?"}, headers=SSE) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "id: 1"
        await stop_broker(stack.broker.process)
        async with stack.db.reading() as sql:
            turn_id = (await turns.unfinished(sql, "", 1))[0]["id"]
        async with stack.db.work() as sql:
            await turns.append_events(sql, "acme", turn_id, [delta(1)])
            await turns.finish(sql, "acme", turn_id, turns.Outcome("done"))
        assert "event: done" in [line async for line in lines]
    assert await gateway.signal(signal.SIGTERM) == 0


def delta(n: int) -> tuple[str, dict[str, str]]:
    return "delta", {"text": str(n)}
