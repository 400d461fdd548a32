"""The tests' Kafka: it keeps its log, answers through a proxy, and a cluster outlives a leader."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import create_default_context
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from tests.servers.frame import running
from tests.servers.kafka import PASSWORD, USER, Kafka, kafka_cluster
from tests.servers.proxy import proxy_to

TOPIC = "notes"
PLACE = TopicPartition(TOPIC, 0)


async def make_topic(bootstrap: str, copies: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await admin.start()
        await admin.create_topics([NewTopic(TOPIC, 1, copies)])
    finally:
        await admin.close()


@asynccontextmanager
async def producing(bootstrap: str, **options: Any) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, **options
    )
    try:
        await producer.start()
        yield producer
    finally:
        await producer.stop()


async def read(bootstrap: str, count: int) -> list[bytes]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([PLACE])
    await consumer.start()
    try:
        async with asyncio.timeout(60):
            return [(await consumer.getone()).value for _ in range(count)]
    finally:
        await consumer.stop()


async def test_a_killed_node_comes_back_with_its_log(tmp_path: Path) -> None:
    async with proxy_to(0) as proxy:
        server = Kafka(tmp_path / "kafka", proxied_at=proxy.port)
        proxy.target = ("127.0.0.1", server.inner_port)
        with running(server):
            through_proxy = f"127.0.0.1:{proxy.port}"
            await make_topic(through_proxy)
            async with producing(through_proxy) as producer:
                await producer.send_and_wait(TOPIC, b"before", partition=0)
                told = {broker.port for broker in producer.client.cluster.brokers()}
                assert told == {proxy.port}
            server.kill()
            server.start()
            async with producing(server.bootstrap) as producer:
                await producer.send_and_wait(TOPIC, b"after", partition=0)
            assert await read(server.bootstrap, 2) == [b"before", b"after"]


async def test_a_cluster_outlives_the_leader_of_a_partition(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path) as nodes:
        bootstrap = ",".join(node.bootstrap for node in nodes.values())
        await make_topic(bootstrap, copies=3)
        async with producing(bootstrap) as producer:
            await producer.send_and_wait(TOPIC, b"before", partition=0)
            leader = producer.client.cluster.leader_for_partition(PLACE)
            nodes[leader].kill()
            async with asyncio.timeout(60):
                await producer.send_and_wait(TOPIC, b"after", partition=0)
            assert producer.client.cluster.leader_for_partition(PLACE) != leader
        assert await read(bootstrap, 2) == [b"before", b"after"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_the_secured_listener_wants_the_password_and_shows_a_certificate(
    kafka: Kafka, mechanism: str
) -> None:
    secured = {
        "security_protocol": "SASL_SSL",
        "ssl_context": create_default_context(cafile=str(kafka.ca_file)),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
    }
    async with producing(
        kafka.secure_bootstrap, sasl_plain_password=PASSWORD, **secured
    ) as producer:
        assert await producer.client.force_metadata_update()
    with pytest.raises(KafkaError):
        async with producing(kafka.secure_bootstrap, sasl_plain_password="wrong", **secured):
            pass
    with pytest.raises(KafkaError):
        async with producing(
            kafka.secure_bootstrap,
            sasl_plain_password=PASSWORD,
            **{**secured, "ssl_context": create_default_context()},
        ):
            pass
