import asyncio
import gc
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import IllegalGenerationError, NodeNotReadyError

from libs.eventbus.fencing import Fence


class Group(AIOKafkaConsumer):
    """A client whose coordinator goes away while a commit is on its way."""

    def __init__(self) -> None:
        self._coordinator = self
        self.generation = 3
        self.group_id = "parser"
        self.away = asyncio.Event()

    def __del__(self) -> None:
        """Nothing was started."""

    async def _do_commit_offsets(self, assignment: Any, offsets: Any) -> None:
        await self.away.wait()
        raise NodeNotReadyError

    async def commit(self, offsets: Any = None) -> None:
        await asyncio.shield(self._do_commit_offsets(None, offsets))


async def test_a_commit_that_fails_after_its_time_is_no_complaint() -> None:
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    group = Group()
    Fence(group).expect_current()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await group.commit({TopicPartition("t", 0): 1})
    group.away.set()
    await asyncio.sleep(0.01)
    gc.collect()
    assert complaints == []


async def test_offsets_of_an_earlier_generation_are_not_sent() -> None:
    group = Group()
    Fence(group).expect_current()
    group.generation = 4
    with pytest.raises(IllegalGenerationError):
        await group.commit({TopicPartition("t", 0): 1})
