import asyncio

import pytest

from libs.kernel import end_tasks, set_within, tasks, to_its_end


async def deaf(cancellations: int) -> None:
    """Goes on after as many cancellations, as if each had been lost."""
    for _ in range(cancellations):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("broken")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "AGAIN_S", 0.01)


@pytest.mark.usefixtures("impatient")
async def test_tasks_end_though_cancellations_are_lost() -> None:
    loops = [asyncio.create_task(deaf(n)) for n in (0, 1, 2)]
    failed = asyncio.create_task(broken())
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await end_tasks(*loops, failed)
    assert all(loop.cancelled() for loop in loops)
    assert failed.done()


async def test_an_event_is_waited_for_as_long_as_said() -> None:
    event = asyncio.Event()
    assert not await set_within(event, 0.01)
    asyncio.get_running_loop().call_later(0.01, event.set)
    assert await set_within(event, 20)


async def test_a_cancellation_counts_though_the_event_is_set_in_the_same_moment() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(set_within(event, 20))
    await asyncio.sleep(0)
    event.set()  # wakes the task, which has not run yet
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()


async def test_a_cancelled_caller_ends_only_when_its_write_has() -> None:
    may_end, said = asyncio.Event(), list[str]()

    async def write() -> None:
        await may_end.wait()
        said.append("written")

    async def caller() -> None:
        try:
            await to_its_end(write())
        finally:
            said.append("left")

    calling = asyncio.create_task(caller())
    for _ in range(3):  # again and again, as `end_tasks` does
        await asyncio.sleep(0)
        calling.cancel()
    asyncio.get_running_loop().call_later(0.01, may_end.set)
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert said == ["written", "left"]


async def test_a_cancelled_caller_waits_no_longer_than_said_and_the_write_goes_on() -> None:
    may_end, ended = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        await may_end.wait()
        ended.set()

    calling = asyncio.create_task(to_its_end(write(), within_s=0.01))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert not ended.is_set()
    may_end.set()
    assert await set_within(ended, 20)


async def test_what_a_write_gives_or_raises_is_its_callers() -> None:
    assert await to_its_end(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="broken"):
        await to_its_end(broken())
