"""A real Kafka that is killed, frozen, cut off, or loses a leader: nothing is lost or doubled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from libs.contracts import OutgoingRecord, Position
from libs.eventbus import KafkaConnection, apply_topics
from libs.eventbus.closing import close_client
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.publisher import KafkaPublisher
from libs.kernel import PermanentError, TransientError
from libs.service.settings import PlatformSettings
from tests.integration.one_step import Pipeline, pipeline
from tests.servers.brokers import specs_of
from tests.servers.frame import running
from tests.servers.kafka import Kafka, kafka_cluster
from tests.servers.proxy import Proxy, proxy_to
from tests.suites.eventbus import TOPIC
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.on_server]

PATIENCE_S = 90.0


def settings_for(home: Path, bootstrap: str) -> PlatformSettings:
    return PlatformSettings(home=home, kafka_bootstrap=bootstrap, kafka_idempotence=True)


@asynccontextmanager
async def working(settings: PlatformSettings, *, copies: int = 1) -> AsyncIterator[Pipeline]:
    """A pipeline that has done its first work."""
    async with pipeline(settings) as work:
        db = work.platform.db
        await db.create_schema()
        await prepare_broker(settings.kafka, db, replication_factor=copies, timeout_s=PATIENCE_S)
        await until(lambda: work.platform.health.ready, within_s=PATIENCE_S)
        await work.submit(range(10))
        await all_done(work, 10)
        yield work


async def all_done(work: Pipeline, count: int) -> None:
    await until(lambda: len(work.effects) == count, within_s=PATIENCE_S)
    assert set(work.effects.values()) == {1}


async def records_on(kafka: KafkaConnection) -> int:
    consumer = kafka.consumer()
    try:
        await consumer.start()
        ends = await consumer.end_offsets([TopicPartition(TOPIC, number) for number in range(6)])
        return int(sum(ends.values()))
    finally:
        await close_client(consumer, timeout_s=5)


async def test_after_a_kill_the_log_is_the_same_and_nothing_is_sent_again(tmp_path: Path) -> None:
    with running(Kafka(tmp_path / "kafka")) as server:
        settings = settings_for(tmp_path, server.bootstrap)
        async with working(settings) as work:
            epoch = await prepare_broker(settings.kafka, work.platform.db)
            work.gate.clear()
            await work.submit(range(10, 30))  # in the log, and in the workers' hands
            await until_sent(settings.kafka, 30)
            server.kill()
            await work.submit(range(30, 50))
            await until(lambda: "kafka" in work.platform.health.missing, within_s=PATIENCE_S)
            work.gate.set()
            server.start()
            await all_done(work, 50)
            await until(lambda: work.platform.health.ready, within_s=PATIENCE_S)
            assert await prepare_broker(settings.kafka, work.platform.db) == epoch
            assert await records_on(settings.kafka) == 50


async def until_sent(kafka: KafkaConnection, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await records_on(kafka) < count:  # noqa: ASYNC110 - the broker's state
            await asyncio.sleep(0.1)


async def test_a_frozen_broker_is_named_and_work_goes_on_when_it_thaws(tmp_path: Path) -> None:
    with running(Kafka(tmp_path / "kafka")) as server:
        async with working(settings_for(tmp_path, server.bootstrap)) as work:
            server.freeze()
            await work.submit(range(10, 30))
            await until(lambda: "kafka" in work.platform.health.missing, within_s=PATIENCE_S)
            server.thaw()
            await all_done(work, 30)
            await until(lambda: work.platform.health.ready, within_s=PATIENCE_S)


async def test_what_is_sent_again_while_the_broker_is_away_stands_in_the_log_once(
    tmp_path: Path,
) -> None:
    with running(Kafka(tmp_path / "kafka")) as server:
        kafka = settings_for(tmp_path, server.bootstrap).kafka
        await apply_topics(kafka, specs_of(TOPIC))
        records = [OutgoingRecord(TOPIC, f"d{number}", b"value") for number in range(20)]
        async with KafkaPublisher(kafka, timeout_s=2) as publisher:
            await publisher.send(OutgoingRecord(TOPIC, "first", b"value"))
            server.freeze()
            for _ in range(3):
                outcomes = await publisher.send_many(records)
                assert all(isinstance(outcome, TransientError) for outcome in outcomes)
            server.thaw()
            await until_sent(kafka, 21)
            outcomes = await publisher.send_many(records)
            assert len({outcome for outcome in outcomes if isinstance(outcome, Position)}) == 20
            await publisher.send_many(records)  # now they are other records of the same content
        assert await records_on(kafka) == 41


async def test_a_producer_whose_numbering_the_broker_refuses_is_replaced(tmp_path: Path) -> None:
    with running(Kafka(tmp_path / "kafka")) as server:
        kafka = settings_for(tmp_path, server.bootstrap).kafka
        await apply_topics(kafka, specs_of(TOPIC))
        record = OutgoingRecord(TOPIC, "k", b"value", partition=0)
        async with KafkaPublisher(kafka) as publisher:
            await publisher.send(record)
            # As if the broker had lost records that the producer has numbered.
            assert publisher._producer is not None
            numbers = publisher._producer._txn_manager
            numbers.increment_sequence_number(TopicPartition(TOPIC, 0), 7)
            with pytest.raises(TransientError, match="OutOfOrder"):
                await publisher.send(record)
            assert (await publisher.send(record)).offset == 1


async def test_cut_connections_lose_nothing_and_write_nothing_twice(tmp_path: Path) -> None:
    """Even when the broker has a record and the answer to its sender is lost."""
    async with proxy_to(0) as proxy:
        server = Kafka(tmp_path / "kafka", proxied_at=proxy.port)
        proxy.target = ("127.0.0.1", server.inner_port)
        with running(server):
            async with working(settings_for(tmp_path, f"127.0.0.1:{proxy.port}")) as work:
                for lot in range(1, 5):
                    first = lot * 10
                    lose_answer_to(proxy, f"d{first + 3:03}")
                    await work.submit(range(first, first + 5))
                    await until(lambda lot=lot: proxy.cuts >= 2 * lot - 1, within_s=PATIENCE_S)
                    proxy.cut()
                    await work.submit(range(first + 5, first + 10))
                await all_done(work, 50)
            assert await records_on(KafkaConnection(server.bootstrap)) == 50


def lose_answer_to(proxy: Proxy, key: str) -> None:
    proxy.cut_answer_to(lambda piece: key.encode() in piece)


async def test_a_leader_dies_while_work_comes_in_and_another_takes_over(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path) as nodes:
        bootstrap = ",".join(node.bootstrap for node in nodes.values())
        settings = settings_for(tmp_path, bootstrap)
        async with working(settings, copies=3) as work:
            submitting = asyncio.create_task(submit_slowly(work, range(10, 130)))
            await until(lambda: len(work.effects) > 30, within_s=PATIENCE_S)
            leader = await leader_of(settings.kafka)
            nodes[leader].kill()
            await submitting
            await all_done(work, 130)
            assert await leader_of(settings.kafka) != leader
            nodes[leader].start()
            await work.submit(range(130, 140))
            await all_done(work, 140)
            assert await records_on(settings.kafka) == 140

            # What no broker can hold is refused by name, at once.
            with pytest.raises(PermanentError, match=r"a\.b\.v1.*[Rr]eplication"):
                await apply_topics(
                    settings.kafka,
                    [replace(specs_of(TOPIC)[0], name="a.b.v1")],
                    replication_factor=4,
                )


async def submit_slowly(work: Pipeline, numbers: range) -> None:
    for number in numbers:
        await work.submit(range(number, number + 1))
        await asyncio.sleep(0.05)


async def leader_of(kafka: KafkaConnection) -> int:
    producer = kafka.producer()
    await producer.start()
    try:
        await producer.partitions_for(TOPIC)
        return int(producer.client.cluster.leader_for_partition(TopicPartition(TOPIC, 0)))
    finally:
        await producer.stop()
