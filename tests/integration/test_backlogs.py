"""Backlogs as each broker tells them."""

import pytest
from aiokafka import TopicPartition

from libs.contracts import OutgoingRecord, TopicSpec
from libs.eventbus import KafkaConnection, apply_topics
from libs.eventbus.backlog import Backlog, KafkaBacklogs
from libs.eventbus.closing import close_client
from libs.eventbus.connection import group_client
from libs.eventbus.publisher import KafkaPublisher
from libs.kernel import TransientError
from tests.ports import free_port
from tests.servers.brokers import AnyBroker, connection_to

pytestmark = pytest.mark.integration

TOPICS = [TopicSpec("a.b.v1", 2, 3_600_000), TopicSpec("c.d.v1", 1, 3_600_000)]


async def test_what_a_group_has_not_committed_waits_for_it(broker: AnyBroker) -> None:
    kafka = connection_to(broker)
    await apply_topics(kafka, TOPICS, timeout_s=20)
    async with KafkaPublisher(kafka) as publisher:
        records = [OutgoingRecord("a.b.v1", str(n), b"x", {}, 1) for n in range(5)]
        await publisher.send_many(records)
    client = group_client(kafka, "first")
    client.subscribe(["a.b.v1"])
    await client.start()
    await client.commit({TopicPartition("a.b.v1", 1): 3})
    await close_client(client, 5.0)
    places = [("a.b.v1", 0), ("a.b.v1", 1), ("c.d.v1", 0)]
    backlogs = KafkaBacklogs(kafka)
    found = await backlogs.of_groups({"first": places, "second": places[1:]})
    assert found["first"][places[1]] == Backlog(3, 5)
    assert [found["first"][place].waiting for place in places] == [0, 2, 0]
    assert [found["second"][place].waiting for place in places[1:]] == [5, 0]


async def test_a_broker_that_is_away_is_a_transient_error() -> None:
    backlogs = KafkaBacklogs(KafkaConnection(f"127.0.0.1:{free_port()}"), timeout_s=2.0)
    with pytest.raises(TransientError):
        await backlogs.of_groups({"g": [("a.b.v1", 0)]})
