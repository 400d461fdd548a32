"""Writes end before their writers do."""

import asyncio
from collections.abc import Callable
from threading import Event
from typing import Any

import numpy as np
import pytest

from libs.storage.ports import IndexRow
from libs.storage.vectors import MilvusVectors


class SlowServer(MilvusVectors):
    """Takes a write when the test says so."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", 2)
        self.asked, self.go = Event(), Event()
        self.writes = 0

    def _run(self, name: str, work: Callable[[Any], Any]) -> Any:
        self.asked.set()
        assert self.go.wait(10)
        self.writes += 1


async def test_a_cancelled_writer_waits_for_the_write_it_began() -> None:
    vectors = SlowServer()
    row = IndexRow("c", "t", "d", 1, "", vector=np.array([1.0, 0.0], dtype=np.float32))
    writer = asyncio.create_task(vectors.upsert("chunks", [row]))
    await asyncio.to_thread(vectors.asked.wait, 10)
    writer.cancel()
    await asyncio.wait({writer}, timeout=0.05)
    assert not writer.done()  # else its rows could come after their removal
    vectors.go.set()
    with pytest.raises(asyncio.CancelledError):
        await writer
    assert vectors.writes == 1
    await vectors.close()
