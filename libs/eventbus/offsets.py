"""How far consumer groups have come."""

import asyncio
from collections.abc import Collection

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from libs.eventbus.connection import KafkaConnection
from libs.eventbus.message import Place
from libs.kernel import TransientError


class KafkaOffsets:
    """What groups have committed, asked of the broker over a connection of its own each time."""

    def __init__(self, kafka: KafkaConnection, *, timeout_s: float = 10.0) -> None:
        self._kafka = kafka
        self._timeout_s = timeout_s

    async def of_group(self, group_id: str, places: Collection[Place]) -> dict[Place, int]:
        """For each place the next offset the group will read; 0 where it has not committed.

        Raises: TransientError when the broker cannot say.
        """
        admin = self._kafka.admin()
        wanted = [TopicPartition(topic, partition) for topic, partition in places]
        try:
            async with asyncio.timeout(self._timeout_s):
                await admin.start()
                # The embedded broker answers only for partitions that are named.
                found = await admin.list_consumer_group_offsets(group_id, partitions=wanted)
        except (KafkaError, OSError, TimeoutError) as exc:
            raise TransientError(f"offsets of {group_id}: {exc or type(exc).__name__}") from exc
        finally:
            await admin.close()
        return {
            (place.topic, place.partition): max(found[place].offset, 0) if place in found else 0
            for place in wanted
        }
