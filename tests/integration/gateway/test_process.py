"""The gateway as a process, on a real broker: questions out, replies back, and its end."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio

from libs.contracts import TurnRequested, to_record
from libs.eventbus import KafkaConnection, Listener, apply_topics
from libs.eventbus.epoch import ensure_epoch
from libs.eventbus.publisher import KafkaPublisher
from libs.kernel import new_id, now_us
from libs.storage.sql import Database, api_keys, open_database, turns, workers
from libs.storage.sql.turn_events import reply_of
from services.gateway.readiness import NEEDED
from tests.broker import free_port, start_broker, stop_broker
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SSE = {"Accept": "text/event-stream"}


@dataclass
class Stack:
    """A broker, SQL and one gateway process."""

    bootstrap: str
    broker: asyncio.subprocess.Process
    gateway: asyncio.subprocess.Process
    db: Database
    client: httpx.AsyncClient
    others: dict[str, workers.Worker]  # services whose heartbeats the test writes

    async def missing(self) -> list[str]:
        return list((await self.client.get("/ready")).json()["missing"])

    async def ready_but_for(self, *names: str) -> None:
        async def so() -> bool:
            return await self.missing() == list(names)

        await until(so, within_s=60)

    async def gauge(self, name: str) -> float:
        text = (await self.client.get("/metrics")).text
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name))

    async def conversation(self) -> str:
        return str((await self.client.post("/v1/conversations")).json()["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """One for all tests here, as its start is what takes time; the last test ends it."""
    tmp_path = tmp_path_factory.mktemp("gateway")
    port, broker_port = free_port(), free_port()
    broker = await start_broker(broker_port)
    bootstrap = f"127.0.0.1:{broker_port}"
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    await db.create_schema()
    async with db.work() as sql:
        key = await api_keys.create(sql, "acme", role="reader", name="test")
    await apply_topics(bootstrap)
    await ensure_epoch(bootstrap, db)
    others = {name: workers.Worker(new_id(), name, "here", 1, now_us()) for name in NEEDED}
    beating = asyncio.create_task(_beat(db, others))
    gateway = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.gateway"),
        env={
            **os.environ,
            "SLUICE_HOME": str(tmp_path),
            "SLUICE_PORT": str(port),
            "SLUICE_INGEST_PORT": str(free_port()),
            "KAFKA_BOOTSTRAP": bootstrap,
            "SLUICE_TURNS_PER_MINUTE": "0",
            "MILVUS_URI": f"http://127.0.0.1:{free_port()}",
        },
    )
    headers = {"Authorization": f"Bearer {key.clear}"}
    client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20)
    try:
        await _answers(client)
        yield Stack(bootstrap, broker, gateway, db, client, others)
    finally:
        beating.cancel()
        await client.aclose()
        for process in (gateway, broker):
            await stop_broker(process)
        await db.close()


async def _beat(db: Database, others: dict[str, workers.Worker]) -> None:
    while True:
        async with db.work() as sql:
            for worker in others.values():
                await workers.beat(sql, worker, [])
        await asyncio.sleep(1)


async def _answers(client: httpx.AsyncClient) -> None:
    async def so() -> bool:
        try:
            return (await client.get("/live")).is_success
        except httpx.TransportError:
            return False

    await until(so, within_s=120)


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
    await stack.ready_but_for("ingest", "search")
    path = f"/v1/conversations/{await stack.conversation()}/turns"
    async with (
        requests_of(stack.bootstrap) as requests,
        KafkaPublisher(stack.bootstrap) as publisher,
        stack.client.stream("POST", path, json={"text": "What?"}, headers=SSE) as response,
    ):
        async with asyncio.timeout(10):
            request = await requests.get()
        for n in range(20):
            async with stack.db.work() as sql:
                event = (await turns.append_events(sql, "acme", request.turn_id, [delta(n)]))[0]
            record = to_record(reply_of("acme", event), partition=request.reply_partition)
            await publisher.send(record)
        async with stack.db.work() as sql:
            end = await turns.finish(sql, "acme", request.turn_id, turns.Outcome("done"))
        assert end is not None
        record = to_record(reply_of("acme", end), partition=request.reply_partition)
        await publisher.send(record)
        lines = [line async for line in response.aiter_lines()]
    assert [line for line in lines if line.startswith("id: ")] == [f"id: {n}" for n in range(1, 23)]
    metrics = (await stack.client.get("/metrics")).text
    assert "\nstream_gap_events_total 0.0\n" in metrics  # the broker brought them all


async def test_open_files_do_not_grow_with_requests_streams_and_clients_that_hang_up(
    stack: Stack,
) -> None:
    await stack.ready_but_for("ingest", "search")
    path = f"/v1/conversations/{await stack.conversation()}/turns"

    async def used_by_many() -> None:
        for _ in range(12):
            await stack.client.get("/v1/documents")  # ingest is away: a connection that fails
            await stack.client.post("/v1/search", json={"query": "gate"})  # and so is Milvus
            async with httpx.AsyncClient(headers=stack.client.headers, timeout=20) as other:
                url = str(stack.client.base_url.join(path))
                async with other.stream("POST", url, json={"text": "?"}, headers=SSE) as stream:
                    turn = json.loads(await first_data(stream))["turn_id"]
            assert (await stack.client.delete(f"/v1/turns/{turn}")).is_success

    await used_by_many()  # what is made once: pools, threads and their connections
    warm = await stack.gauge("process_open_fds")
    await used_by_many()

    async def as_before() -> bool:
        return await stack.gauge("process_open_fds") <= warm + 5

    await until(as_before)


async def test_what_is_missing_is_named(stack: Stack) -> None:
    await stack.ready_but_for("ingest", "search")
    lacking = {name: stack.others.pop(name) for name in ("parser", "executor")}
    async with stack.db.work() as sql:
        await workers.leave(sql, lacking["parser"].id)
        await workers.beat(sql, lacking["executor"], ["kafka"])
    await stack.ready_but_for("executor (kafka)", "ingest", "parser", "search")
    refused = await stack.client.post("/v1/search", json={"query": "gate"})
    assert refused.status_code == 503
    assert refused.headers["retry-after"]


async def test_a_stream_outlives_the_broker_and_the_process_ends_in_good_order(
    stack: Stack,
) -> None:
    path = f"/v1/conversations/{await stack.conversation()}/turns"
    async with stack.client.stream("POST", path, json={"text": "What?"}, headers=SSE) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "id: 1"
        await stop_broker(stack.broker)
        async with stack.db.reading() as sql:
            turn_id = (await turns.unfinished(sql, "", 1))[0]["id"]
        async with stack.db.work() as sql:
            await turns.append_events(sql, "acme", turn_id, [delta(1)])
            await turns.finish(sql, "acme", turn_id, turns.Outcome("done"))
        assert "event: done" in [line async for line in lines]
    stack.gateway.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        assert await stack.gateway.wait() == 0


async def first_data(stream: httpx.Response) -> str:
    """Of the first event; the reader may hang up after it."""
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            return line.removeprefix("data: ")
    raise AssertionError("the stream ended before it began")


def delta(n: int) -> tuple[str, dict[str, str]]:
    return "delta", {"text": str(n)}
