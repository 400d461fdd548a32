"""Rebalances as the engine sees them."""

import asyncio

from libs.contracts import DocumentUploaded, encode
from libs.eventbus import Policies, Subscriptions
from libs.eventbus.engine import Engine
from libs.eventbus.ledger import Ledger
from libs.eventbus.testing import MemoryRecord
from libs.storage.sql import open_database

TOPIC = "documents.uploaded.v1"
PLACE = (TOPIC, 0)


def record(offset: int, key: str) -> MemoryRecord:
    event = DocumentUploaded("t1", key, offset, "a.txt", "text/plain", "key", 3)
    return MemoryRecord(TOPIC, 0, offset, 0, key.encode(), encode(event))


class Gated:
    def __init__(self) -> None:
        self.started: list[int] = []
        self.done: list[int] = []
        self.gate = asyncio.Event()
        ledger = Ledger(open_database("sqlite+aiosqlite:///never-opened.db"), "g", {TOPIC: TOPIC})
        subscriptions = Subscriptions().on(DocumentUploaded, self.handle)
        self.engine = Engine(subscriptions, ledger, Policies(), {TOPIC: ""})

    async def handle(self, event: DocumentUploaded) -> None:
        self.started.append(event.generation)
        if event.document_id == "slow":
            await self.gate.wait()
        self.done.append(event.generation)


async def start(*records: MemoryRecord) -> Gated:
    gated = Gated()
    gated.engine.feed(PLACE, records)
    while len(gated.started) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    return gated


RECORDS = [record(0, "slow"), record(1, "quick"), record(2, "slow")]


async def test_a_step_outlives_a_rebalance_that_gives_its_partition_back() -> None:
    gated = await start(*RECORDS)
    await gated.engine.pause(0.01)
    gated.engine.keep_only({PLACE})
    assert gated.engine.offsets() == {PLACE: 0}
    gated.engine.feed(PLACE, RECORDS)  # fetched again from the committed offset
    gated.gate.set()
    await gated.engine.quiet()
    assert gated.started == [0, 1, 2]
    assert gated.engine.offsets() == {PLACE: 3}


async def test_a_full_partition_that_is_given_back_is_fetched_again() -> None:
    records = [record(0, "slow"), record(1, "quick")]
    records += [record(offset, "slow") for offset in range(2, 600)]
    gated = await start(*records)
    assert gated.engine.is_full(PLACE)
    await gated.engine.pause(0.01)  # drops what waits behind the first one
    gated.engine.keep_only({PLACE})
    gated.gate.set()
    await gated.engine.quiet()
    assert gated.engine.offsets() == {PLACE: 2}
    assert not gated.engine.is_full(PLACE)  # else nobody would ever fetch them again
    gated.engine.feed(PLACE, records[2:])
    assert gated.engine.is_full(PLACE)
    await gated.engine.quiet()
    assert gated.engine.offsets() == {PLACE: 600}


async def test_a_step_ends_when_its_partition_goes_to_somebody_else() -> None:
    gated = await start(*RECORDS)
    await gated.engine.pause(0.01)
    gated.engine.keep_only({(TOPIC, 1)})
    await asyncio.wait_for(gated.engine.quiet(), 60)
    assert gated.done == [1]
    assert gated.engine.offsets() == {}


async def test_marks_that_another_member_has_passed_meanwhile_are_dropped() -> None:
    gated = await start(*RECORDS)
    assert gated.engine.passed({PLACE: 0}) == set()
    assert gated.engine.passed({PLACE: None, ("elsewhere", 1): 7}) == set()
    assert gated.engine.passed({PLACE: 9}) == {PLACE}
    gated.engine.keep_only(set())
    gated.gate.set()
    gated.engine.feed(PLACE, [record(9, "quick")])
    await gated.engine.quiet()
    assert gated.done == [1, 9]
    assert gated.engine.offsets() == {PLACE: 10}


async def test_after_a_new_log_old_steps_no_longer_count() -> None:
    gated = await start(*RECORDS)
    gated.engine.start_over()
    assert gated.engine.offsets() == {}
    gated.engine.feed(PLACE, [record(0, "quick")])
    while len(gated.done) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert gated.engine.offsets() == {PLACE: 1}
    gated.gate.set()
    await gated.engine.quiet()
    assert gated.engine.offsets() == {PLACE: 1}
