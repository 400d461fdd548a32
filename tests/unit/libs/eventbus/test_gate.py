"""Who is let through while nothing works."""

import asyncio

import pytest

from libs.eventbus import GatePolicy
from libs.eventbus.gate import Gate

SOON = GatePolicy(max_failed_in_a_row=2, first_probe_s=0.01, max_probe_interval_s=0.01)


async def shut(policy: GatePolicy = SOON) -> Gate:
    gate = Gate(policy)
    for message in range(policy.max_failed_in_a_row):
        gate.went_wrong("backend", message)
    return gate


class Queue:
    """Messages that wait at a gate; `passed` are the topics of those let through, in order."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.passed: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, *topics: str) -> None:
        for topic in topics:
            self._tasks.append(asyncio.create_task(self._wait(topic)))
        await asyncio.sleep(0)

    async def until_passed(self, count: int) -> list[str]:
        async with asyncio.timeout(60):
            while len(self.passed) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        return self.passed[:count]

    async def _wait(self, topic: str) -> None:
        await self.gate.turn(topic)
        self.passed.append(topic)


async def test_topics_take_turns_whatever_waits_in_each() -> None:
    queue = Queue(await shut())
    await queue.join(*["bulk"] * 20, "urgent", "retry", "urgent")
    passed = await queue.until_passed(6)
    assert sorted(passed[:3]) == ["bulk", "retry", "urgent"]
    assert sorted(passed[3:5]) == ["bulk", "urgent"]
    assert passed[5] == "bulk"


async def test_a_message_of_a_topic_that_had_no_turn_lately_is_next() -> None:
    queue = Queue(await shut())
    await queue.join(*["bulk"] * 20)
    await queue.until_passed(3)
    await queue.join("urgent")
    assert "urgent" in (await queue.until_passed(5))[3:]


async def test_one_that_ends_well_lets_all_through() -> None:
    gate = await shut(GatePolicy(max_failed_in_a_row=2, first_probe_s=1000.0))
    queue = Queue(gate)
    await queue.join("a", "b", "b")
    assert (gate.shut, queue.passed) == (True, [])
    gate.went_well()
    await queue.until_passed(3)
    assert (gate.shut, gate.problem, gate.nothing_works) == (False, None, False)


@pytest.mark.parametrize(("messages", "is_shut"), [("aaaaa", False), ("aaaab", True)])
async def test_it_takes_more_than_one_failing_message_to_shut_it(
    messages: str, is_shut: bool
) -> None:
    gate = Gate(GatePolicy(max_failed_in_a_row=5))
    for message in messages:
        gate.went_wrong("backend", message)
    assert (gate.shut, gate.nothing_works) == (is_shut, True)
    gate.close()


async def test_a_message_that_fails_between_good_ones_says_nothing_about_the_rest() -> None:
    gate = Gate(GatePolicy(max_failed_in_a_row=2))
    for message in range(5):
        gate.went_wrong("backend", message)
        gate.went_well()
    assert (gate.shut, gate.nothing_works) == (False, False)
