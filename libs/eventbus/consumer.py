"""A group consumer: joins, runs the engine, and comes back after every kind of trouble."""

import asyncio
from collections.abc import Sequence

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from libs.contracts.topics import topic_of
from libs.eventbus.connection import KafkaConnection, group_client
from libs.eventbus.engine import Engine
from libs.eventbus.gauges import MembershipGauges
from libs.eventbus.ledger import Ledger
from libs.eventbus.membership import Membership
from libs.eventbus.policies import Policies
from libs.eventbus.reading import reading
from libs.eventbus.reporting import REJOIN_DELAY_S, Report, report_nothing
from libs.eventbus.subscriptions import Subscriptions
from libs.eventbus.waiting import until_any
from libs.kernel import set_within
from libs.storage.sql import Database

log = structlog.get_logger(__name__)

REPORT_INTERVAL_S = 0.5


class Consumer:
    """Reads a group's topics until it is stopped: at least once, every key in order."""

    def __init__(
        self,
        kafka: KafkaConnection,
        db: Database,
        subscriptions: Subscriptions,
        *,
        group_id: str,
        lanes: Sequence[str] = ("",),
        policies: Policies | None = None,
        report: Report = report_nothing,
    ) -> None:
        topics = [topic_of(each.event_type.__name__) for each in subscriptions]
        self._reading = reading(topics, group_id, lanes)
        self._kafka = kafka
        self._group_id = group_id
        self._policies = policies or Policies()
        self._report = report
        self._log_is_new = asyncio.Event()
        self._from_beginning = False
        ledger = Ledger(db, group_id, self._reading.base_topics)
        self.engine = Engine(subscriptions, ledger, self._policies, self._reading.lanes)

    def new_epoch(self) -> None:
        """The broker lost its log: read the new one from its beginning."""
        self._log_is_new.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until `stop` is set, then drain, commit and leave.

        Raises: what crashed the engine.
        """
        try:
            while not stop.is_set():
                await self._stay(stop)
        finally:
            await self.engine.close()

    async def _stay(self, stop: asyncio.Event) -> None:
        """One membership of the group, until something ends it."""
        self._report("kafka")
        client = group_client(self._kafka, self._group_id)
        membership = Membership(
            client,
            self.engine,
            self._policies,
            MembershipGauges(self._group_id, client, self.engine),
            revoke_timeout_s=self._kafka.revoke_timeout_s,
            from_beginning=self._from_beginning,
        )
        try:
            await until_any(
                self._consume(membership, client),
                self._report_regularly(membership),
                stop.wait(),
                self._log_is_new.wait(),
                self.engine.crashed(),
            )
        except (KafkaError, OSError) as exc:
            log.warning("membership_lost", group=self._group_id, error=repr(exc))
            self._note_epoch(joined=membership.joined.is_set())
            await membership.close()
            await set_within(stop, REJOIN_DELAY_S)
        except BaseException:  # cut off: nothing is committed that was not before
            await membership.close()
            raise
        self._note_epoch(joined=membership.joined.is_set())
        await membership.leave(self._drain_timeout_s(stop))

    async def _consume(self, membership: Membership, client: AIOKafkaConsumer) -> None:
        client.subscribe(list(self._reading.lanes), listener=membership)
        await client.start()
        await membership.run()

    async def _report_regularly(self, membership: Membership) -> None:
        await membership.joined.wait()
        while True:
            self._report(self.engine.problem)
            await asyncio.sleep(REPORT_INTERVAL_S)

    def _note_epoch(self, *, joined: bool) -> None:
        """Old offsets stay void until a membership has begun at the new log's beginning."""
        if self._log_is_new.is_set():
            self._log_is_new.clear()
            self._from_beginning = True
            self.engine.start_over()
        elif joined:
            self._from_beginning = False

    def _drain_timeout_s(self, stop: asyncio.Event) -> float:
        # What runs may go on beside a new membership; only the end of the process waits for it.
        return self._policies.flow.drain_timeout_s if stop.is_set() else 0.0
