"""What a group's membership shows of itself: lag, work in flight, held back partitions."""

from collections.abc import Collection

from aiokafka import AIOKafkaConsumer, TopicPartition

from libs.eventbus.engine import Engine
from libs.observability import metrics


class MembershipGauges:
    """Sets the gauges of one member; partitions that went elsewhere are no longer shown."""

    def __init__(self, group_id: str, client: AIOKafkaConsumer, engine: Engine) -> None:
        self._group = group_id
        self._client = client
        self._engine = engine
        self._shown: set[TopicPartition] = set()

    def rebalanced(self) -> None:
        metrics.EVENTBUS_REBALANCES.labels(self._group).inc()

    def committed(self, outcome: str) -> None:
        """`outcome` is `done` or `failed`."""
        metrics.EVENTBUS_COMMITS.labels(self._group, outcome).inc()

    def show(self, assigned: Collection[TopicPartition]) -> None:
        """Take the current numbers."""
        full = sum(self._engine.is_full(partition) for partition in assigned)
        metrics.EVENTBUS_PAUSED.labels(self._group).set(full)
        metrics.EVENTBUS_IN_FLIGHT.labels(self._group).set(self._engine.running_count)
        marks = self._engine.offsets()
        for partition in self._shown - set(assigned):
            metrics.EVENTBUS_LAG.remove(self._group, partition.topic, str(partition.partition))
        self._shown.intersection_update(assigned)
        for partition in assigned:
            end, mark = self._client.highwater(partition), marks.get(partition)
            if end is not None and mark is not None:
                place = (self._group, partition.topic, str(partition.partition))
                metrics.EVENTBUS_LAG.labels(*place).set(max(0, end - mark))
                self._shown.add(partition)

    def close(self) -> None:
        """The member left: it shows nothing any more."""
        self.show(())
