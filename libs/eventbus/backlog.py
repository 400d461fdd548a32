"""How much of the log each group has yet to read."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from libs.eventbus.closing import close_client
from libs.eventbus.connection import KafkaConnection
from libs.eventbus.message import Place
from libs.eventbus.offsets import KafkaOffsets
from libs.kernel import TransientError

FETCH_WAIT_MS = 50


@dataclass(frozen=True, slots=True)
class Backlog:
    """One group in one partition."""

    next_offset: int  # the next that the group will commit
    end: int  # where the next record goes

    @property
    def waiting(self) -> int:
        """Records that are not done: those at work now, too."""
        return max(0, self.end - self.next_offset)


class Backlogs(Protocol):
    """Knows the log's ends and what groups have committed."""

    async def of_groups(
        self, places: Mapping[str, Collection[Place]]
    ) -> dict[str, dict[Place, Backlog]]:
        """By group, for each of its places. Raises: TransientError when the broker is away."""
        ...


class KafkaBacklogs:
    """`Backlogs` asked of the broker, each time over connections of its own."""

    def __init__(self, kafka: KafkaConnection, *, timeout_s: float = 10.0) -> None:
        self._kafka = kafka
        self._timeout_s = timeout_s
        self._committed = KafkaOffsets(kafka, timeout_s=timeout_s)

    async def of_groups(
        self, places: Mapping[str, Collection[Place]]
    ) -> dict[str, dict[Place, Backlog]]:
        # What is committed first: the end can only move on, so nothing seems to be behind it.
        groups = sorted(places)
        found = await asyncio.gather(
            *(self._committed.of_group(group, places[group]) for group in groups)
        )
        ends = await self._ends({place for group in groups for place in places[group]})
        return {
            group: {place: Backlog(offset, ends[place]) for place, offset in committed.items()}
            for group, committed in zip(groups, found, strict=True)
        }

    async def _ends(self, places: Collection[Place]) -> dict[Place, int]:
        client = self._kafka.consumer(fetch_max_wait_ms=FETCH_WAIT_MS)
        try:
            async with asyncio.timeout(self._timeout_s):
                await client.start()
                return await _ends(client, [TopicPartition(*place) for place in places])
        except (KafkaError, OSError, TimeoutError) as exc:
            raise TransientError(f"ends of the log: {exc or type(exc).__name__}") from exc
        finally:
            await close_client(client, self._timeout_s)


async def _ends(client: AIOKafkaConsumer, partitions: Sequence[TopicPartition]) -> dict[Place, int]:
    """The embedded broker, asked for an end, answers with the start of the last batch, plus one;
    what a fetch says of the end is right.
    """
    about = await client.end_offsets(partitions)
    client.assign(partitions)
    for partition in partitions:
        client.seek(partition, about[partition])
    while any(client.highwater(partition) is None for partition in partitions):
        await client.getmany(timeout_ms=FETCH_WAIT_MS)
    return {(p.topic, p.partition): int(client.highwater(p)) for p in partitions}
