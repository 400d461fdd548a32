"""A real Kafka that is killed, frozen, cut off, or loses a leader: nothing is lost or doubled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from libs.eventbus import KafkaConnection, apply_topics
from libs.eventbus.backlog import KafkaBacklogs
from libs.eventbus.preparation import prepare_broker
from libs.kernel import PermanentError
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
    places = [(TOPIC, partition) for partition in range(6)]
    found = await KafkaBacklogs(kafka, timeout_s=30).of_groups({"nobody": places})
    return sum(backlog.end for backlog in found["nobody"].values())


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
