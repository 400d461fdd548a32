"""Executors as processes: killed in mid-answer, cancelled from outside, ended in good order."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from libs.contracts import ConversationExecutionPlan, ExecutionMode, TurnReply
from libs.eventbus import KafkaConnection, Listener
from libs.eventbus.admin import apply_topics
from libs.eventbus.epoch import ensure_epoch
from libs.eventbus.publisher import KafkaPublisher
from libs.eventbus.relay import Relay
from libs.storage.sql import Database, turns
from tests.broker import running_broker
from tests.standins.llm import MODEL, LlmServer, Scene
from tests.unit.services.executor.conversation import Seen, seen

ROOT = Path(__file__).parents[3]
ANSWER = ["The limit is 20,000 yuan [1]. ", "Approval takes two days [2]."]
PLAN = ConversationExecutionPlan(ExecutionMode.RAG_CHAT, "What is the refund limit?")


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    with LlmServer([Scene(ANSWER)]) as server:
        yield server


@pytest.fixture
async def bootstrap() -> AsyncIterator[str]:
    async with running_broker() as address:
        await apply_topics(KafkaConnection(address))
        yield address


@pytest.fixture
async def db(db: Database, bootstrap: str) -> AsyncIterator[Database]:
    """A database whose events this process relays, as a gateway's would."""
    epoch = await ensure_epoch(KafkaConnection(bootstrap), db)
    async with KafkaPublisher(KafkaConnection(bootstrap)) as publisher:
        relay = Relay(db, publisher, lambda: str(epoch))
        db.after_commit = relay.after_commit
        relaying = asyncio.create_task(relay.run())
        yield db
        relaying.cancel()


EXECUTOR = "tests.integration.services.executor_process"


class Executors:
    """Starts executor processes, or others, and ends what is left of them."""

    def __init__(self, home: Path, bootstrap: str, llm: LlmServer) -> None:
        self.started: list[asyncio.subprocess.Process] = []
        self.log = home / "processes.log"
        self._environment = os.environ | {
            "SLUICE_HOME": str(home),
            "KAFKA_BOOTSTRAP": bootstrap,
            "LLM_BASE_URL": llm.base_url,
            "LLM_MODEL": MODEL,
        }

    def use(self, llm: LlmServer) -> None:
        """What is started from now on asks this model."""
        self._environment["LLM_BASE_URL"] = llm.base_url

    async def start(self, module: str = EXECUTOR) -> asyncio.subprocess.Process:
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module),
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        self.started.append(process)
        return process


@pytest.fixture
async def executors(
    tmp_path: Path, bootstrap: str, llm: LlmServer, db: Database
) -> AsyncIterator[Executors]:
    made = Executors(tmp_path, bootstrap, llm)
    yield made
    for process in made.started:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def ask(db: Database) -> str:
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, "acme")
        turn = await turns.create_turn(sql, "acme", conversation_id, "What is the refund limit?", 2)
        await turns.set_plan(sql, "acme", turn["id"], PLAN)
    return str(turn["id"])


async def eventually(check: Callable[[], Awaitable[bool]], *, within_s: float) -> None:
    async with asyncio.timeout(within_s):
        while True:
            if await check():
                return
            await asyncio.sleep(0.05)


async def ended(db: Database, turn_id: str, *, within_s: float = 120.0) -> Seen:
    async def is_over() -> bool:
        return bool((await seen(db, turn_id)).turn["state"] != "planned")

    await eventually(is_over, within_s=within_s)
    return await seen(db, turn_id)


async def speaking(db: Database, turn_id: str) -> None:
    async def has_said() -> bool:
        return "delta" in (await seen(db, turn_id)).types

    await eventually(has_said, within_s=120.0)


async def test_turn_of_a_killed_executor_is_finished_by_another(
    db: Database, llm: LlmServer, executors: Executors
) -> None:
    llm.play(Scene(ANSWER, hang_after=1), Scene(ANSWER))
    first = await executors.start()
    turn_id = await ask(db)
    await speaking(db, turn_id)
    first.kill()
    await first.wait()
    await executors.start()
    turn = await ended(db, turn_id)
    turn.check_whole()
    assert turn.text == "".join(ANSWER)
    assert turn.restarts == 1
    assert turn.turn["usage"]["completion_tokens"] == 24


async def test_an_executor_frozen_past_its_lease_writes_nothing_when_it_wakes_up(
    db: Database, llm: LlmServer, executors: Executors
) -> None:
    llm.play(Scene(ANSWER, pause_s=5.0), Scene(ANSWER))
    frozen = await executors.start()
    turn_id = await ask(db)
    await speaking(db, turn_id)
    frozen.send_signal(signal.SIGSTOP)
    await executors.start()
    turn = await ended(db, turn_id)
    turn.check_whole()
    assert (turn.text, turn.restarts) == ("".join(ANSWER), 1)
    frozen.send_signal(signal.SIGCONT)  # the rest of its answer is there to be read
    frozen.send_signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        assert await frozen.wait() == 0  # it finished what it was at
    assert (await seen(db, turn_id)).events == turn.events


async def test_cancel_from_outside_stops_the_answer(
    db: Database, llm: LlmServer, executors: Executors
) -> None:
    llm.play(Scene(ANSWER, hang_after=1))
    process = await executors.start()
    turn_id = await ask(db)
    await speaking(db, turn_id)
    async with db.work() as sql:
        await turns.cancel(sql, "acme", turn_id)
    turn = await ended(db, turn_id, within_s=60)
    assert turn.turn["state"] == "cancelled"
    assert turn.types[-1] == "done"
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        assert await process.wait() == 0


async def test_gateways_partition_gets_every_event_in_order(
    db: Database, bootstrap: str, executors: Executors
) -> None:
    heard: list[TurnReply] = []

    async def hear(reply: TurnReply) -> None:
        heard.append(reply)

    listener = Listener(KafkaConnection(bootstrap, 6.0), TurnReply, hear, partitions=[2])
    stop = asyncio.Event()
    listening = asyncio.create_task(listener.run(stop))
    await executors.start()
    turn_id = await ask(db)
    turn = await ended(db, turn_id)

    async def all_heard() -> bool:
        return len(heard) >= len(turn.events) - 1

    await eventually(all_heard, within_s=60)
    assert [(r.seq, r.type) for r in heard] == [(e.seq, e.type) for e in turn.events[1:]]
    stop.set()
    await listening
