"""An in-memory bus for tests: the real engine over lists instead of a broker."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from libs.contracts import Event, OutgoingRecord, decode, to_record, topic_of
from libs.contracts.record import SCHEMA
from libs.eventbus.engine import Engine
from libs.eventbus.ledger import Ledger
from libs.eventbus.message import Place
from libs.eventbus.policies import Policies, RetryPolicy
from libs.eventbus.reading import reading
from libs.eventbus.retrying import Holding
from libs.eventbus.subscriptions import Subscriptions
from libs.kernel import PermanentError, now_us, stable_partition
from libs.storage.sql import Database, OutboxRow


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A record as a broker would deliver it."""

    topic: str
    partition: int
    offset: int
    timestamp: int  # milliseconds
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(slots=True)
class MemoryLog:
    """Partitioned, append-only, with the offsets one group committed."""

    partitions_of: dict[str, int]
    records: dict[Place, list[MemoryRecord]] = field(default_factory=lambda: defaultdict(list))
    committed: dict[Place, int] = field(default_factory=dict)

    def append(self, out: OutgoingRecord) -> None:
        partition = out.partition
        if partition is None:
            partition = stable_partition(out.key, self.partitions_of[out.topic])
        log = self.records[out.topic, partition]
        headers = tuple((name, value.encode()) for name, value in out.headers.items())
        now_ms = time.time_ns() // 1_000_000
        key = out.key.encode()
        log.append(MemoryRecord(out.topic, partition, len(log), now_ms, key, out.value, headers))


class InMemoryBus:
    """Delivers events to a service's subscriptions by the rules of the real consumer.

    Keys stay in order, effects may repeat, failures become retries (outbox rows whose time the
    test moves with `run_due`), `failed` hooks and dead letters. What handlers emit is collected,
    not delivered.
    """

    def __init__(
        self,
        db: Database,
        subscriptions: Subscriptions,
        *,
        group_id: str = "test",
        policies: Policies | None = None,
    ) -> None:
        """`db` has its schema; the bus relays its outbox from now on."""
        self.published: list[Event] = []  # emitted by handlers, in order of their commits
        self.dead_letters: list[tuple[Event | bytes, str]] = []  # event (or poison) and reason
        self.dead_records: list[OutgoingRecord] = []  # the same, as sent to the dead-letter topic
        self.retries: list[OutboxRow] = []  # waiting for their time
        self._subscriptions = subscriptions
        self._policies = policies or Policies(retry=RetryPolicy(base_delay_s=1.0))
        topics = [topic_of(each.event_type.__name__) for each in subscriptions]
        lanes = ("", *sorted({lane for topic in topics for lane in topic.lanes}))
        self._reading = reading(topics, group_id, lanes)
        base = {topic.name: topic.partitions for topic in topics}
        self.log = MemoryLog({t: base[b] for t, b in self._reading.base_topics.items()})
        self._ledger = Ledger(db, group_id, self._reading.base_topics, self._clock_us)
        self._ahead_us = 0
        self._relayed_on = db.after_commit
        db.after_commit = self._relay
        self.restart()

    async def deliver(self, event: Event) -> None:
        """Publish an event and wait until the handlers have nothing left to do."""
        self.publish(to_record(event))
        await self.settle()

    def publish(self, record: OutgoingRecord) -> None:
        """Append a record, decodable or not; `settle` delivers it."""
        self.log.append(record)

    async def redeliver(self) -> None:
        """Deliver every record so far once more, as after a crash before any commit."""
        await self.engine.close()
        self.log.committed.clear()
        self.restart()
        await self.settle()

    async def run_due(self, within_s: float = float("inf")) -> int:
        """Let `within_s` seconds pass: deliver the retries due by then; returns how many.

        Retries that these deliveries lead to wait for the next call.
        """
        until_us = self._clock_us() + within_s * 1e6
        due = sorted((r for r in self.retries if r.not_before <= until_us), key=_when)
        self.retries = [row for row in self.retries if row.not_before > until_us]
        for row in due:
            self._ahead_us += max(0, row.not_before - self._clock_us())
            self.publish(row.record)
        if within_s != float("inf"):
            self._ahead_us += max(0, int(until_us) - self._clock_us())
        await self.settle()
        return len(due)

    async def settle(self) -> None:
        """Deliver what was published until all of it is finished, and commit."""
        await self.engine.quiet()
        while self.pump():
            await self.engine.quiet()
        self.commit()

    def pump(self) -> bool:
        """Feed the engine what it has room for; True if there was anything."""
        fed = False
        for place, records in self.log.records.items():
            position = self._positions[place]
            if position < len(records) and not self.engine.is_full(place):
                batch = records[position : position + self._policies.flow.max_poll_records]
                self.engine.feed(place, batch)
                self._positions[place] += len(batch)
                fed = True
        return fed

    def commit(self) -> None:
        self.log.committed.update(self.engine.offsets())

    def restart(self) -> None:
        """A new consumer that goes on at the committed offsets."""
        self.engine = Engine(
            self._subscriptions,
            self._ledger,
            self._policies,
            self._reading.lanes,
            Holding(first_delay_s=0.001, max_delay_s=0.01),
        )
        self._positions: dict[Place, int] = defaultdict(int, self.log.committed)

    def _clock_us(self) -> int:
        return now_us() + self._ahead_us

    async def _relay(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            topic = row.record.topic
            if topic.endswith(".retry"):
                self.retries.append(row)
            elif topic.endswith(".dlq"):
                self.dead_records.append(row.record)
                reason = row.record.headers["dlq_reason"]
                self.dead_letters.append((_event_or_bytes(row.record.value), reason))
            else:
                self.published.append(decode(row.record.value, row.record.headers.get(SCHEMA)))
        if self._relayed_on is not None:
            await self._relayed_on(rows)


def _when(row: OutboxRow) -> int:
    return row.not_before


def _event_or_bytes(value: bytes) -> Event | bytes:
    try:
        return decode(value)
    except PermanentError:
        return value
