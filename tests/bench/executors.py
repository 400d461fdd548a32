"""Two executors beside one, on turns that mostly wait for the model.

Each run has its own broker, database and processes; the model answers after some seconds. What is
compared is the rate between the first tenth and four fifths of the turns: all are busy then.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select

from libs.contracts import ConversationExecutionPlan, ExecutionMode
from libs.eventbus import KafkaConnection
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.publisher import KafkaPublisher
from libs.eventbus.relay import Relay
from libs.storage.sql import Database, open_database, turns, workers
from libs.storage.sql import tables as sql_tables
from tests.broker import running_broker
from tests.standins.llm import MODEL, LlmServer, Scene

TURNS = 384
WAIT_S = (4.0, 20.0)  # of the model, evenly spread: waves of turns blur
LEAST = 1.9
EXECUTOR = "tests.integration.services.executor_process"
QUESTION = "What is the refund limit?"
PLAN = ConversationExecutionPlan(ExecutionMode.RAG_CHAT, QUESTION)
ANSWER = ["The limit is 20,000 yuan [1]. "]


@asynccontextmanager
async def relaying(folder: Path, bootstrap: str) -> AsyncIterator[Database]:
    """A database whose events go to the broker, as a gateway's would."""
    kafka = KafkaConnection(bootstrap)
    db = open_database(f"sqlite+aiosqlite:///{folder / 'sluice.db'}")
    await db.create_schema()
    epoch = await prepare_broker(kafka, db, embedded=True)
    async with KafkaPublisher(kafka) as publisher:
        relay = Relay(db, publisher, lambda: epoch)
        db.after_commit = relay.after_commit
        running = asyncio.create_task(relay.run())
        yield db
        running.cancel()
    await db.close()


async def start(folder: Path, bootstrap: str, llm: LlmServer) -> asyncio.subprocess.Process:
    settings = {
        "SLUICE_HOME": str(folder),
        "KAFKA_BOOTSTRAP": bootstrap,
        "LLM_BASE_URL": llm.base_url,
        "LLM_MODEL": MODEL,
        "SLUICE_LOG_LEVEL": "ERROR",
    }
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", EXECUTOR, env=os.environ | settings
    )


async def ask(db: Database) -> None:
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, "acme")
        turn = await turns.create_turn(sql, "acme", conversation_id, QUESTION, 0)
        await turns.set_plan(sql, "acme", turn["id"], PLAN)


async def until_ready(db: Database, count: int) -> None:
    ready = 0
    while ready < count:
        await asyncio.sleep(0.2)
        async with db.reading() as sql:
            ready = sum(bool(row["ready"]) for row in await workers.living(sql))


async def until_done(db: Database, count: int) -> float:
    """When so many turns have ended."""
    done = select(func.count()).where(sql_tables.turns.c.state == "done")
    while True:
        async with db.reading() as sql:
            if int(await sql.scalar(done) or 0) >= count:
                return perf_counter()
        await asyncio.sleep(0.1)


async def rate_of(executors: int) -> float:
    """Turns a second."""

    def scene(_request: object) -> Scene:
        return Scene(ANSWER, first_pause_s=random.uniform(*WAIT_S))

    with tempfile.TemporaryDirectory() as name, LlmServer(scene) as llm:
        folder = Path(name)
        async with running_broker() as bootstrap, relaying(folder, bootstrap) as db:
            started = [await start(folder, bootstrap, llm) for _ in range(executors)]
            try:
                await until_ready(db, executors)
                for _ in range(TURNS):
                    await ask(db)
                first = await until_done(db, TURNS // 10)
                last = await until_done(db, TURNS * 4 // 5)
            finally:
                for process in started:
                    process.send_signal(signal.SIGKILL)
                    await process.wait()
    return (TURNS * 4 // 5 - TURNS // 10) / (last - first)


async def compare() -> tuple[float, float]:
    return await rate_of(1), await rate_of(2)


def main() -> int:
    one, two = asyncio.run(compare())
    table = Table("executors", "turns/s", "x one", title=f"load {os.getloadavg()[0]:.1f}")
    table.add_row("1", f"{one:.1f}", "1.00")
    table.add_row("2", f"{two:.1f}", f"{two / one:.2f} (at least {LEAST})")
    Console(width=100).print(table)
    return 0 if two / one >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
