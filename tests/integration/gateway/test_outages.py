"""Streams of gateway processes while a gateway, the broker or SQL is away, or the client is."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import pytest_asyncio

from libs.contracts import to_record
from libs.eventbus import KafkaConnection
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.publisher import KafkaPublisher
from libs.service.turn_journal import ReplyFanOut
from libs.storage.sql import turns
from libs.storage.sql.turn_events import TurnEvent, reply_of
from services.gateway.streaming import frame
from tests.broker import stop_broker
from tests.integration.gateway.stack import Replica, Stack, running_stack
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SSE = {"Accept": "text/event-stream"}
HEARTBEAT_S, SEND_TIMEOUT_S = 0.2, 5.0
# Holds what SQLite locks while it reads or writes (in WAL mode), until its standard input ends.
HOLD_SQL = """
import fcntl, sys
index = open(sys.argv[1] + "-shm", "r+b")
fcntl.lockf(index, fcntl.LOCK_EX, 8, 120)
print("held", flush=True)
sys.stdin.read()
"""


@dataclass
class Stage:
    """Two gateways, and an executor that says what the test wants."""

    stack: Stack
    publisher: KafkaPublisher
    fan_out: ReplyFanOut

    @property
    def replicas(self) -> tuple[Replica, Replica]:
        first, second = self.stack.replicas
        return first, second

    async def say(self, turn_id: str, first: int, stop: int) -> None:
        """Deltas with these numbers, each a step of its own."""
        for number in range(first, stop):
            async with self.stack.db.work() as sql:
                said = await turns.append_events(sql, "acme", turn_id, [delta(f"{number} 闸 ")])
            await self.announce(turn_id, *said)

    async def end(self, turn_id: str) -> None:
        async with self.stack.db.work() as sql:
            terminal = await turns.finish(sql, "acme", turn_id, turns.Outcome("done"))
        assert terminal is not None
        await self.announce(turn_id, terminal)

    async def announce(self, turn_id: str, *events: TurnEvent) -> None:
        async with self.stack.db.reading() as sql:
            partition = (await turns.load_turn(sql, "acme", turn_id))["reply_partition"]
        self.fan_out.offer([to_record(reply_of("acme", e), partition=partition) for e in events])

    async def stored(self, turn_id: str) -> bytes:
        """What an uncut stream of the turn is."""
        async with self.stack.db.reading() as sql:
            events = await turns.events_after(sql, "acme", turn_id, 0, limit=10_000)
        return b"".join(frame(event) for event in events)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """One for all tests here: each leaves everything running."""
    quick = {"SLUICE_HEARTBEAT_S": f"{HEARTBEAT_S}", "SLUICE_SEND_TIMEOUT_S": f"{SEND_TIMEOUT_S}"}
    async with (
        running_stack(tmp_path_factory.mktemp("outages"), 2, quick) as stack,
        KafkaPublisher(KafkaConnection(stack.broker.bootstrap)) as publisher,
        ReplyFanOut(publisher) as fan_out,
    ):
        yield Stage(stack, publisher, fan_out)


@dataclass
class Reader:
    """A client that reads a stream to its end, or to where it was cut."""

    read: bytearray = field(default_factory=bytearray)
    heartbeats: int = 0
    seen: dict[str, str] = field(default_factory=dict)  # response headers
    ended: bool = False

    @property
    def events(self) -> list[bytes]:
        blocks = bytes(self.read).split(b"\n\n")[:-1]
        return [block + b"\n\n" for block in blocks if not block.startswith(b":")]

    @property
    def heard(self) -> bytes:
        return b"".join(self.events)

    @property
    def turn_id(self) -> str:
        return self.read.split(b'"turn_id":"')[1].split(b'"')[0].decode()

    async def run(self, client: httpx.AsyncClient, method: str, path: str, **options: Any) -> None:
        with suppress(httpx.TransportError):
            async with client.stream(method, path, **options) as response:
                assert response.status_code == 200
                self.seen = dict(response.headers)
                async for block in response.aiter_raw():
                    self.read += block
                    self.heartbeats += block.count(b": heartbeat")
        self.ended = True

    async def got(self, count: int) -> None:
        await until(lambda: self.read.count(b"\nevent: ") >= count, within_s=60)


@asynccontextmanager
async def asking(replica: Replica) -> AsyncIterator[Reader]:
    """A new question and its stream; at the end of the block the stream is read to its end."""
    path = f"/v1/conversations/{await replica.conversation()}/turns"
    reader = Reader()
    headers = {**SSE, "Accept-Encoding": "gzip, br"}
    body = {"text": "What?"}
    reading = asyncio.create_task(
        reader.run(replica.client, "POST", path, json=body, headers=headers)
    )
    await reader.got(1)
    yield reader
    async with asyncio.timeout(60):
        await reading


async def resumed(replica: Replica, turn_id: str, after: int) -> bytes:
    reader = Reader()
    headers = {**SSE, "Last-Event-ID": str(after)}
    async with asyncio.timeout(60):
        await reader.run(replica.client, "GET", f"/v1/turns/{turn_id}/events", headers=headers)
    return reader.heard


def delta(text: str) -> tuple[str, Mapping[str, Any]]:
    return "delta", {"text": text}


@asynccontextmanager
async def sql_held(home: Path) -> AsyncIterator[None]:
    """Nobody can read or write SQL, and nobody is told so: they wait."""
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLD_SQL, str(home / "sluice.db")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        await holder.communicate(b"")  # which closes its standard input


async def test_a_stream_whose_gateway_is_killed_goes_on_at_another_and_at_the_next_one_there(
    stage: Stage,
) -> None:
    first, second = stage.replicas
    async with asking(first) as reader:
        turn_id = reader.turn_id
        await stage.say(turn_id, 0, 10)
        await reader.got(5)
        await first.signal(signal.SIGKILL)
    cut, seen = reader.heard, len(reader.events)
    assert reader.ended
    assert not cut.count(b"event: done")
    going_on = asyncio.create_task(resumed(second, turn_id, seen))
    await stage.say(turn_id, 10, 20)
    starting = asyncio.create_task(first.start())
    await stage.end(turn_id)
    whole = await stage.stored(turn_id)
    assert cut + await going_on == whole
    await starting
    assert cut + await resumed(first, turn_id, seen) == whole
    assert await resumed(second, turn_id, 0) == whole


async def test_a_stream_goes_on_while_the_broker_is_away_and_after_it_came_back_empty(
    stage: Stage,
) -> None:
    broker = stage.stack.broker
    async with asking(stage.replicas[0]) as reader:
        turn_id = reader.turn_id
        await stage.say(turn_id, 0, 5)
        await stop_broker(broker.process)
        await stage.say(turn_id, 5, 10)
        await reader.got(11)
        await broker.restart()
        await prepare_broker(KafkaConnection(broker.bootstrap), stage.stack.db, embedded=True)
        await stage.publisher.renew()
        await stage.say(turn_id, 10, 15)
        await stage.end(turn_id)
    assert reader.heard == await stage.stored(turn_id)


async def test_sql_that_hangs_or_fails_in_mid_stream_leaves_heartbeats_no_gap_and_no_repeat(
    stage: Stage,
) -> None:
    db = stage.stack.db
    async with asking(stage.replicas[0]) as reader:
        turn_id = reader.turn_id
        other = Reader()
        path = f"/v1/turns/{turn_id}/events"
        following = asyncio.create_task(other.run(stage.replicas[1].client, "GET", path))
        await other.got(1)

        async def beats() -> None:
            before = [each.heartbeats for each in (reader, other)]
            await until(
                lambda: all(
                    each.heartbeats >= count + 5
                    for each, count in zip((reader, other), before, strict=True)
                ),
                within_s=60,
            )

        await stage.say(turn_id, 0, 5)
        async with sql_held(stage.stack.home):
            await beats()
        await stage.say(turn_id, 5, 10)
        await reader.got(11)
        async with db.engine.begin() as connection:
            await connection.exec_driver_sql("ALTER TABLE turn_events RENAME TO away")
        await beats()
        async with db.engine.begin() as connection:
            await connection.exec_driver_sql("ALTER TABLE away RENAME TO turn_events")
        assert not reader.ended
        await stage.say(turn_id, 10, 15)
        await stage.end(turn_id)
        async with asyncio.timeout(60):
            await following
    whole = await stage.stored(turn_id)
    assert reader.heard == other.heard == whole
    assert reader.seen["content-encoding"] == "identity"  # though gzip was welcome


async def test_a_client_that_reads_nothing_holds_up_nobody_is_cut_off_and_may_resume(
    stage: Stage,
) -> None:
    gateway = stage.replicas[0]
    assert gateway.process is not None
    process = psutil.Process(gateway.process.pid)
    many = [delta("x" * 4_000)] * 500
    async with asking(gateway) as reader:
        turn_id = reader.turn_id
        slow = socket.create_connection(("127.0.0.1", gateway.client.base_url.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        key = gateway.client.headers["authorization"]
        request = f"GET /v1/turns/{turn_id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        slow.sendall(f"{request}Authorization: {key}\r\n\r\n".encode())
        for round_ in range(4):  # 8 MB, far more than sockets hold
            async with stage.stack.db.work() as sql:
                said = await turns.append_events(sql, "acme", turn_id, many)
            await stage.announce(turn_id, *said)
            await reader.got(1 + (round_ + 1) * len(many))
        await stage.end(turn_id)
    whole = await stage.stored(turn_id)
    assert reader.heard == whole
    port = slow.getsockname()[1]
    await until(lambda: port not in {c.raddr.port for c in process.net_connections() if c.raddr})
    received = b""
    with suppress(ConnectionResetError):
        while block := slow.recv(1 << 20):
            received += block
    slow.close()
    assert b"event: done" not in received
    last = int(received.rpartition(b"\n\n")[0].rpartition(b"id: ")[2].split(b"\n")[0])
    rest = await resumed(gateway, turn_id, last)
    assert rest == whole[-len(rest) :]
    assert rest.startswith(b"id: %d\n" % (last + 1))
    assert "Traceback" not in gateway.log.read_text()
