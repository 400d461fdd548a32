import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from libs.contracts import OutgoingRecord
from libs.eventbus.late_answers import LateAnswers

RECORD = OutgoingRecord("documents.uploaded.v1", "d1", b"value", {"ce_id": "1"})
OTHER = OutgoingRecord("documents.uploaded.v1", "d1", b"value", {"ce_id": "2"})


class Send(asyncio.Future[str]):
    """A send that counts who listens to its end."""

    listeners = 0

    def add_done_callback(self, fn: Callable[..., Any], **given: Any) -> None:
        self.listeners += 1
        super().add_done_callback(fn, **given)


@pytest.fixture
async def send() -> Send:
    return Send()


async def test_the_earlier_try_of_the_same_record_is_found_once(send: Send) -> None:
    late = LateAnswers()
    late.expect(RECORD, send)
    assert late.take(OTHER) is None
    assert late.take(RECORD) is send
    assert late.take(RECORD) is None


async def test_an_answer_that_came_meanwhile_is_kept(send: Send) -> None:
    late = LateAnswers()
    late.expect(RECORD, send)
    send.set_result("stored")
    await asyncio.sleep(0)
    assert late.take(RECORD) is send


async def test_a_try_that_failed_is_forgotten(send: Send) -> None:
    late = LateAnswers()
    late.expect(RECORD, send)
    send.set_exception(OSError("gone"))
    await asyncio.sleep(0)
    assert late.take(RECORD) is None


async def test_a_record_that_comes_again_and_again_is_watched_once(send: Send) -> None:
    late = LateAnswers()
    for _ in range(1_000):
        late.expect(RECORD, send)
        assert late.take(RECORD) is send
    assert send.listeners == 1
