"""Handlers run in place, yet as if each had a task and a context of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from libs.eventbus.message import Record
from libs.eventbus.ordering import KeyedWorkers
from libs.eventbus.progress import Progress
from libs.eventbus.testing import MemoryRecord

seen: ContextVar[str] = ContextVar("seen", default="nothing")


def records(*keys: bytes) -> list[MemoryRecord]:
    return [MemoryRecord("t", 0, offset, 0, key, b"") for offset, key in enumerate(keys)]


class Harness:
    def __init__(
        self, process: Callable[[Record], Coroutine[Any, Any, None]], limit: int = 8
    ) -> None:
        self.crashes: list[BaseException] = []
        self.progress = Progress(("t", 0))
        self.workers = KeyedWorkers(process, limit, self.crashes.append)

    async def run(self, *keys: bytes) -> None:
        self.workers.submit(self.progress, self.progress.take(records(*keys)))
        await self.workers.quiet()


async def test_a_context_variable_set_by_one_message_is_not_seen_by_another() -> None:
    found: list[str] = []

    async def process(record: Record) -> None:
        found.append(seen.get())
        seen.set(f"first half of {record.offset}")
        if record.offset % 2:
            await asyncio.sleep(0)
        found.append(seen.get())

    await Harness(process).run(b"a", b"b", b"c", b"d")
    assert found.count("nothing") == 4
    assert sorted(set(found) - {"nothing"}) == [f"first half of {n}" for n in range(4)]


async def test_a_time_limit_inside_a_handler_hits_that_handler_only() -> None:
    outcomes: dict[int, str] = {}

    async def process(record: Record) -> None:
        try:
            async with asyncio.timeout(0.01 if record.offset == 1 else 5):
                await asyncio.sleep(10 if record.offset == 1 else 0.05)
        except TimeoutError:
            outcomes[record.offset] = "timed out"
        else:
            outcomes[record.offset] = "done"

    await Harness(process).run(b"a", b"b", b"c")
    assert outcomes == {0: "done", 1: "timed out", 2: "done"}


async def test_every_suspended_handler_has_a_task_of_its_own() -> None:
    tasks: set[int] = set()
    all_here = asyncio.Barrier(3)

    async def process(record: Record) -> None:
        tasks.add(id(asyncio.current_task()))
        await all_here.wait()

    await asyncio.wait_for(Harness(process).run(b"a", b"b", b"c"), 60)
    assert len(tasks) == 3


async def test_no_more_handlers_are_suspended_at_once_than_allowed() -> None:
    now, most = 0, 0

    async def process(record: Record) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1

    harness = Harness(process, limit=3)
    await harness.run(*(b"%d" % n for n in range(50)))
    assert most == 3
    assert harness.progress.next_offset == 50


async def test_quick_handlers_let_the_event_loop_breathe() -> None:
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def process(record: Record) -> None:
        until = asyncio.get_running_loop().time() + 0.002
        while asyncio.get_running_loop().time() < until:
            pass

    watching = asyncio.create_task(watch())
    await Harness(process).run(*(b"%d" % n for n in range(200)))  # 400 ms of work
    watching.cancel()
    assert turns > 3  # once before the work, the rest in the middle of it


async def test_a_cancelled_engine_leaves_what_ran_unfinished() -> None:
    started = asyncio.Event()

    async def process(record: Record) -> None:
        if record.offset == 1:
            started.set()
            await asyncio.Event().wait()

    harness = Harness(process)
    running = asyncio.create_task(harness.run(b"a", b"b", b"c"))
    await started.wait()
    await harness.workers.cancel()
    await asyncio.wait_for(running, 60)
    assert harness.progress.next_offset == 1


async def test_an_error_that_processing_lets_out_is_told() -> None:
    async def process(record: Record) -> None:
        raise ZeroDivisionError

    harness = Harness(process)
    await harness.run(b"a")
    await asyncio.sleep(0)
    assert [type(error) for error in harness.crashes] == [ZeroDivisionError]
    assert harness.progress.next_offset == 0


@pytest.mark.parametrize("drop_first", [True, False])
async def test_dropping_a_partition_frees_its_keys_for_others(drop_first: bool) -> None:
    gate, done = asyncio.Event(), list[tuple[str, int]]()

    async def process(record: Record) -> None:
        if record.key == b"busy":
            await gate.wait()
        done.append((record.topic, record.offset))

    harness = Harness(process, limit=1)
    other = Progress(("u", 0))
    kept = [MemoryRecord("u", 0, 0, 0, b"a", b"")]
    harness.workers.submit(harness.progress, harness.progress.take(records(b"busy", b"a", b"b")))
    await asyncio.sleep(0.01)
    if drop_first:
        harness.workers.drop({harness.progress})
    harness.workers.submit(other, other.take(kept))
    if not drop_first:
        harness.workers.drop({harness.progress})
    gate.set()
    await asyncio.wait_for(harness.workers.quiet(), 60)
    assert done == [("t", 0), ("u", 0)]
