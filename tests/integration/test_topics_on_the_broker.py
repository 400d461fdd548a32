"""Topics are created from the topic files on the embedded broker."""

import asyncio

import pytest

from libs.contracts import TopicSpec, topic_specs
from libs.eventbus import KafkaConnection
from libs.eventbus.admin import apply_topics
from libs.kernel import PermanentError, TransientError
from tests.broker import partitions_of, running_broker, start_broker, stop_broker
from tests.ports import free_port

pytestmark = pytest.mark.integration


async def test_every_topic_is_there_with_its_partitions_and_a_repeat_changes_nothing() -> None:
    async with running_broker() as bootstrap:
        created = await apply_topics(KafkaConnection(bootstrap), timeout_s=20)
        wanted = {spec.name: spec.partitions for spec in topic_specs()}
        assert set(created) == set(wanted)
        assert await partitions_of(bootstrap) == wanted
        assert await apply_topics(KafkaConnection(bootstrap), timeout_s=20) == []


async def test_processes_that_start_together_all_end_with_the_same_topics() -> None:
    async with running_broker() as bootstrap:
        created = await asyncio.gather(
            *(apply_topics(KafkaConnection(bootstrap), timeout_s=20) for _ in range(4))
        )
        names = sorted(name for part in created for name in part)
        assert names == sorted(spec.name for spec in topic_specs())


async def test_a_broker_that_comes_later_is_waited_for() -> None:
    port = free_port()
    applying = asyncio.create_task(
        apply_topics(
            KafkaConnection(f"127.0.0.1:{port}"), [TopicSpec("a.b.v1", 2, 1000)], timeout_s=20
        )
    )
    done, _ = await asyncio.wait([applying], timeout=0.3)
    assert not done
    process = await start_broker(port)
    try:
        assert await applying == ["a.b.v1"]
    finally:
        await stop_broker(process)


async def test_a_topic_with_other_partitions_is_named_with_both_numbers() -> None:
    async with running_broker() as bootstrap:
        await apply_topics(KafkaConnection(bootstrap), [TopicSpec("a.b.v1", 2, 1000)], timeout_s=20)
        with pytest.raises(PermanentError, match=r"a\.b\.v1 has 2 partitions, wanted 3") as caught:
            await apply_topics(
                KafkaConnection(bootstrap), [TopicSpec("a.b.v1", 3, 1000)], timeout_s=20
            )
        assert caught.value.reason == "topic-partitions-differ"


async def test_no_broker_at_all_ends_in_time_and_says_where_it_looked() -> None:
    port = free_port()
    with pytest.raises(TransientError, match=rf"127\.0\.0\.1:{port} not ready within 0\.5 s"):
        async with asyncio.timeout(60):
            await apply_topics(KafkaConnection(f"127.0.0.1:{port}"), timeout_s=0.5)
