"""One stay in a consumer group: polls, hands over, commits, and leaves in good order."""

import asyncio
from collections.abc import Collection
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from libs.eventbus.closing import close_client
from libs.eventbus.engine import Engine
from libs.eventbus.fencing import Fence
from libs.eventbus.gauges import MembershipGauges
from libs.eventbus.policies import Policies
from libs.eventbus.waiting import until_any
from libs.kernel import set_within

log = structlog.get_logger(__name__)

POLL_MS = 200
FULL_POLL_MS = 20  # while a partition is held back: how soon it is looked at again
BROKER_TIMEOUT_S = 5.0
# Stands for "no partition": the client takes an empty list to mean all of them.
NOWHERE = TopicPartition("", -1)

Batches = dict[TopicPartition, list[Any]]


class Membership(ConsumerRebalanceListener):
    """Feeds the engine from one group client for as long as `run` is not cancelled.

    The poll loop never waits for handlers. A full partition is left out of the polls, so its
    records stay with the client and the broker; the group keeps seeing a live member.
    """

    def __init__(
        self,
        client: AIOKafkaConsumer,
        engine: Engine,
        policies: Policies,
        gauges: MembershipGauges,
        *,
        revoke_timeout_s: float,
        from_beginning: bool,
    ) -> None:
        """`from_beginning`: offsets committed before are void, the log is a new one."""
        self.joined = asyncio.Event()
        self._client = client
        self._engine = engine
        self._gauges = gauges
        self._flow = policies.flow
        self._commit = policies.commit
        self._revoke_timeout_s = revoke_timeout_s
        self._from_beginning = from_beginning
        self._committed: dict[TopicPartition, int] = {}
        self._commit_due = asyncio.Event()
        self._committing = asyncio.Lock()
        self._fence: Fence | None = None
        # Cleared while partitions change hands: what the engine knows is not true of them yet.
        self._settled = asyncio.Event()

    async def run(self) -> None:
        """Poll and commit until cancelled. Raises: KafkaError: the membership is broken."""
        self._fence = Fence(self._client)
        await until_any(self._poll(), self._commit_regularly())

    async def leave(self, drain_timeout_s: float) -> None:
        """Finish what runs within the bound, commit, leave the group."""
        await self._engine.pause(drain_timeout_s)
        await self.commit()
        await self.close()

    async def close(self) -> None:
        """Leave the group as it is. What runs goes on; safe to repeat."""
        self._gauges.close()
        await close_client(self._client, BROKER_TIMEOUT_S)

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        if revoked:
            await self._engine.pause(self._revoke_timeout_s)
            await self.commit()
        self._settled.clear()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._committed.clear()
        committed = await self._committed_by_group(assigned)
        self._engine.keep_only(assigned - self._engine.passed(committed))
        if self._from_beginning:
            self._from_beginning = False
            for partition in assigned:
                self._client.seek(partition, 0)
        log.info("partitions_assigned", count=len(assigned))
        if new := [str(partition) for partition, offset in committed.items() if offset is None]:
            log.info("reading_from_earliest", partitions=len(new), why="the group never committed")
        self._gauges.rebalanced()
        self._settled.set()
        self.joined.set()

    async def _committed_by_group(
        self, assigned: Collection[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """What any member committed last; None: nobody ever did. Empty: the broker cannot say."""
        if self._from_beginning:
            return {}
        partitions = list(assigned)
        try:
            async with asyncio.timeout(BROKER_TIMEOUT_S):
                found = await asyncio.gather(*map(self._client.committed, partitions))
        except (KafkaError, OSError, TimeoutError) as exc:
            log.warning("committed_offsets_not_read", error=repr(exc))
            return {}
        return dict(zip(partitions, found, strict=True))

    async def _poll(self) -> None:
        committed_at_count = 0
        while True:
            batches = await self._next()
            await self._settled.wait()
            for partition, records in batches.items():
                self._engine.feed(partition, records)
            if self._engine.finished_count - committed_at_count >= self._commit.max_messages:
                committed_at_count = self._engine.finished_count
                self._commit_due.set()
            await asyncio.sleep(0)  # the client does not wait while it has records: workers first

    async def _next(self) -> Batches:
        assigned = self._client.assignment()
        room = [partition for partition in assigned if not self._engine.is_full(partition)]
        max_records = self._flow.max_poll_records
        if len(room) == len(assigned):
            batches: Batches = await self._client.getmany(
                timeout_ms=POLL_MS, max_records=max_records
            )
        else:
            batches = await self._client.getmany(
                *(room or [NOWHERE]), timeout_ms=FULL_POLL_MS, max_records=max_records
            )
        return batches

    async def _commit_regularly(self) -> None:
        while True:
            await set_within(self._commit_due, self._commit.max_interval_s)
            self._commit_due.clear()
            await self.commit()
            self._gauges.show(self._client.assignment())

    async def commit(self) -> None:
        """Commit the low-water marks of the partitions held. Failing is harmless: they repeat."""
        async with self._committing:
            if self._fence is None or not self._settled.is_set():
                return
            self._fence.expect_current()
            assigned = self._client.assignment()
            marks = {
                partition: mark
                for partition, mark in self._engine.offsets().items()
                if partition in assigned and self._committed.get(partition) != mark
            }
            if not marks:
                return
            try:
                async with asyncio.timeout(BROKER_TIMEOUT_S):
                    await self._client.commit(marks)
            except (KafkaError, TimeoutError) as exc:
                log.warning("commit_failed", error=repr(exc))
                self._gauges.committed("failed")
            else:
                self._gauges.committed("done")
                self._committed.update(marks)
