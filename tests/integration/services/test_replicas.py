"""Two replicas of a service on a real Kafka share the work; one does it all when it is alone."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from libs.contracts import topic_specs
from libs.eventbus import FlowPolicy
from libs.service.settings import PlatformSettings
from tests.integration.services.pipeline import QUICK, Pipeline, pipeline
from tests.servers.brokers import EmptiedKafka
from tests.servers.kafka import Kafka
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.on_server]

PARTITIONS = {spec.name: spec.partitions for spec in topic_specs()}
Share = frozenset[tuple[str, int]]  # the partitions of one member


@pytest.fixture
async def work(tmp_path: Path, kafka: Kafka) -> AsyncIterator[Pipeline]:
    broker = EmptiedKafka(kafka)
    await broker.restart()
    settings = PlatformSettings(
        home=tmp_path, kafka_bootstrap=kafka.bootstrap, kafka_idempotence=True
    )
    async with pipeline(settings, broker) as made:
        # However the documents fall to the two: no bound keeps one of them from holding its share.
        made.policies = replace(QUICK, flow=FlowPolicy())
        yield made


async def shares(admin: AdminClient, group: str) -> set[Share]:
    """What each member of a group has, as the broker says."""
    asked = admin.describe_consumer_groups([group])[group]
    found = await asyncio.to_thread(asked.result, 30)
    return {
        frozenset((place.topic, place.partition) for place in member.assignment.topic_partitions)
        for member in found.members
    }


async def until_shared(work: Pipeline, *groups: str, members: int, within_s: float) -> None:
    """Until every partition of each group is somebody's, and everybody has some."""
    admin = AdminClient({"bootstrap.servers": work.broker.bootstrap})

    async def is_shared() -> bool:
        found = [await shares(admin, group) for group in groups]
        return all(len(one) == members and all(one) and _is_whole(one) for one in found)

    await until(is_shared, within_s=within_s)


def _is_whole(found: set[Share]) -> bool:
    places = set().union(*found)
    there_are = sum(PARTITIONS[topic] for topic in {topic for topic, _ in places})
    return len(places) == sum(map(len, found)) == there_are


async def test_two_split_the_partitions_do_all_once_and_hand_over_what_they_had(
    work: Pipeline,
) -> None:
    await work.start("ingest", "parser", "chunker", "chunker 2", "indexer", "indexer 2")
    await until_shared(work, "chunker", "indexer", members=2, within_s=60)
    await work.upload(*(f"first-{n}" for n in range(40)))
    await work.until_states(indexed=40)

    work.embedder.fates.held["held"] = asyncio.Event()  # in the hands of both
    await work.upload(*(f"held-{n}" for n in range(12)))
    await until(lambda: sum(n.startswith("held") for n in work.embedder.fates.met) == 12)
    leaving = asyncio.create_task(work.end("chunker 2", "indexer 2"))
    work.embedder.fates.held["held"].set()
    await until_shared(work, "chunker", "indexer", members=1, within_s=60)
    await leaving
    await work.upload(*(f"last-{n}" for n in range(20)))
    await work.until_states(indexed=72)
    assert set(work.embedder.fates.met.values()) == {1}
