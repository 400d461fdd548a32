"""Work on a document ends soon after nobody waits for it, and not before."""

import asyncio

import pytest

from libs.contracts import DocumentControl
from libs.kernel import TransientError
from libs.service.document_watch import DocumentWatch

NEVER_S = 3600.0


class Endless:
    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.ended = asyncio.Event()

    async def work(self) -> str:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return "never"


class Truth:
    """What SQL says; `asked` counts how often it was."""

    def __init__(self) -> None:
        self.due = True
        self.away = False
        self.asked = asyncio.Semaphore(0)

    async def __call__(self) -> bool:
        self.asked.release()
        if self.away:
            raise TransientError("SQL is away")
        return self.due


@pytest.fixture
async def endless() -> Endless:
    return Endless()


async def test_the_broadcast_ends_work_without_waiting_for_the_next_look(endless: Endless) -> None:
    watch, truth = DocumentWatch(NEVER_S), Truth()
    task = asyncio.create_task(watch.while_due("d", endless.work(), truth))
    await endless.started.wait()
    truth.due = False
    await watch.on_control(DocumentControl("t", "other", "cancel"))
    await watch.on_control(DocumentControl("t", "d", "cancel"))
    assert await asyncio.wait_for(task, 60) is None
    assert endless.ended.is_set()


async def test_without_a_broadcast_sql_is_asked_regularly(endless: Endless) -> None:
    truth = Truth()
    truth.due = False
    assert await DocumentWatch(0.01).while_due("d", endless.work(), truth) is None


async def test_a_broadcast_about_an_older_generation_ends_nothing(endless: Endless) -> None:
    watch, truth = DocumentWatch(NEVER_S), Truth()
    task = asyncio.create_task(watch.while_due("d", endless.work(), truth))
    await endless.started.wait()
    for _ in range(2):
        await watch.on_control(DocumentControl("t", "d", "overtaken"))
        await truth.asked.acquire()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert endless.ended.is_set()


async def test_a_moment_without_sql_ends_nothing(endless: Endless) -> None:
    watch, truth = DocumentWatch(0.001), Truth()
    truth.away = True
    task = asyncio.create_task(watch.while_due("d", endless.work(), truth))
    for _ in range(3):
        await truth.asked.acquire()
    assert not task.done()
    truth.away, truth.due = False, False
    assert await asyncio.wait_for(task, 60) is None


async def test_results_and_errors_come_through() -> None:
    async def fine() -> int:
        return 7

    async def wrong() -> int:
        raise ValueError("wrong")

    watch = DocumentWatch(NEVER_S)
    assert await watch.while_due("d", fine(), Truth()) == 7
    with pytest.raises(ValueError, match="wrong"):
        await watch.while_due("d", wrong(), Truth())
