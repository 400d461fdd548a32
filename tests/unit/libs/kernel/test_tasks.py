import asyncio

from libs.kernel import end_tasks, set_within


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


async def test_tasks_end_though_cancellations_are_lost() -> None:
    tasks = [asyncio.create_task(deaf(n)) for n in (0, 1, 2)]
    failed = asyncio.create_task(broken())
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await end_tasks(*tasks, failed)
    assert all(task.cancelled() for task in tasks)
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
