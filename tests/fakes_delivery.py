"""Fakes of the delivery Protocols: a publisher, committed offsets, a source of work."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from libs.contracts import OutgoingRecord, Position
from libs.eventbus.backlog import Backlog
from libs.eventbus.message import Place
from libs.eventbus.reconciler import Unfinished
from libs.kernel import TransientError, stable_partition
from libs.storage.sql import UnitOfWork

PARTITIONS = 6


class FakePublisher:
    """`Publisher` whose log is a list. `down` refuses everything, `refused` single keys."""

    def __init__(self) -> None:
        self.sent: list[OutgoingRecord] = []
        self.down = False
        self.refused: set[str] = set()
        self._ends: dict[Place, int] = defaultdict(int)

    async def send(self, record: OutgoingRecord) -> Position:
        if self.down or record.key in self.refused:
            raise TransientError("the broker is away")
        partition = record.partition
        if partition is None:
            partition = stable_partition(record.key, PARTITIONS)
        offset = self._ends[record.topic, partition]
        self._ends[record.topic, partition] += 1
        self.sent.append(record)
        return Position(record.topic, partition, offset)

    async def send_many(self, records: Sequence[OutgoingRecord]) -> list[Position | TransientError]:
        outcomes: list[Position | TransientError] = []
        for record in records:
            try:
                outcomes.append(await self.send(record))
            except TransientError as exc:
                outcomes.append(exc)
        return outcomes

    def keys(self) -> list[str]:
        return [record.key for record in self.sent]


class FakeOffsets:
    """`Backlogs` as set by the test; the rest is uncommitted, and the log is very long."""

    def __init__(self) -> None:
        self.committed: dict[Place, int] = {}
        self.ends: dict[Place, int] = {}
        self.down = False

    async def of_groups(
        self, places: Mapping[str, Collection[Place]]
    ) -> dict[str, dict[Place, Backlog]]:
        if self.down:
            raise TransientError("the broker is away")
        return {
            group: {place: self._of(place) for place in wanted} for group, wanted in places.items()
        }

    def _of(self, place: Place) -> Backlog:
        return Backlog(self.committed.get(place, 0), self.ends.get(place, 1_000_000))


class FakeWork:
    """`WorkSource` over a dict: id -> unfinished work."""

    kind = "document"

    def __init__(self, works: dict[str, Unfinished]) -> None:
        self.works = works

    async def unfinished(
        self, sql: UnitOfWork, after: str, limit: int
    ) -> Sequence[tuple[str, Unfinished]]:
        return sorted((i, w) for i, w in self.works.items() if i > after)[:limit]
