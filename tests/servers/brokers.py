"""A broker without topics for each test, embedded and Apache Kafka."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from libs.contracts import EPOCH_TOPIC, TopicSpec, topic_specs
from libs.eventbus import KafkaConnection
from tests.broker import restartable_broker
from tests.servers.kafka import Kafka

BROKERS = ["embedded", pytest.param("kafka", marks=pytest.mark.on_server)]
EMPTIED_WITHIN_S = 30.0


class AnyBroker(Protocol):
    """What suites need of a broker."""

    @property
    def bootstrap(self) -> str: ...

    async def restart(self) -> None:
        """Lose the log: the same address, nothing in it."""


class EmptiedKafka:
    """A Kafka that loses its log when all of its topics are deleted: by itself it keeps it."""

    def __init__(self, server: Kafka) -> None:
        self.server = server

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    async def restart(self) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            async with asyncio.timeout(EMPTIED_WITHIN_S):
                while not await _is_empty(admin):  # noqa: ASYNC110 - the broker's state
                    await asyncio.sleep(0.1)
        finally:
            await admin.close()


async def _is_empty(admin: AIOKafkaAdminClient) -> bool:
    """Delete what is there; what groups committed goes with the topics, a moment later."""
    try:
        return await _emptied(admin)
    except KafkaError:  # a coordinator that is still loading, say
        return False


async def _emptied(admin: AIOKafkaAdminClient) -> bool:
    topics = [name for name in await admin.list_topics() if not name.startswith("__")]
    if topics:
        await admin.delete_topics(topics)
    groups = [group for group, *_ in await admin.list_consumer_groups()]
    committed = [await admin.list_consumer_group_offsets(group) for group in groups]
    return not topics and not any(committed)


@pytest.fixture(params=BROKERS)
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[AnyBroker]:
    """A broker of each kind that holds nothing."""
    if request.param == "embedded":
        async with restartable_broker() as embedded:
            yield embedded
        return
    emptied = EmptiedKafka(request.getfixturevalue("kafka"))
    await emptied.restart()
    yield emptied


def connection_to(broker: AnyBroker, *, session_timeout_s: float = 6.0) -> KafkaConnection:
    """As services connect to such a broker."""
    return KafkaConnection(broker.bootstrap, session_timeout_s, idempotence=not is_embedded(broker))


def is_embedded(broker: AnyBroker) -> bool:
    return not isinstance(broker, EmptiedKafka)


def specs_of(*topics: str) -> Sequence[TopicSpec]:
    """These topics with their lanes, retries and dead letters, and the epoch's."""
    return [spec for spec in topic_specs() if spec.name.startswith((*topics, EPOCH_TOPIC))]
