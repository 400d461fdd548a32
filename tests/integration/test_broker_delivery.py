"""Publisher, epoch and preparation on real brokers."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from libs.contracts import OutgoingRecord, Position, topic_specs
from libs.eventbus import KafkaConnection
from libs.eventbus.epoch import EpochWatcher, ensure_epoch, read_epoch
from libs.eventbus.offsets import KafkaOffsets
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.publisher import KafkaPublisher
from libs.kernel import TransientError, stable_partition
from libs.storage.sql import Database, open_database
from libs.storage.sql.epochs import load_epoch
from tests.broker import partitions_of, running_broker, start_broker, stop_broker
from tests.ports import free_port
from tests.servers.brokers import AnyBroker, connection_to, is_embedded
from tests.waiting import eventually, until

pytestmark = pytest.mark.integration

TOPIC = "documents.uploaded.v1"
PARTITIONS = next(spec.partitions for spec in topic_specs() if spec.name == TOPIC)


async def test_records_of_a_key_stay_in_one_partition_and_in_order(
    db: Database, broker: AnyBroker
) -> None:
    kafka = connection_to(broker)
    await prepare_broker(kafka, db, embedded=is_embedded(broker))
    async with KafkaPublisher(kafka) as publisher:
        records = [OutgoingRecord(TOPIC, f"d{n % 7}", str(n).encode()) for n in range(200)]
        outcomes = await publisher.send_many(records)
        chosen = await publisher.send(OutgoingRecord(TOPIC, "d1", b"v", partition=3))
    last: dict[str, int] = {}
    for record, outcome in zip(records, outcomes, strict=True):
        assert isinstance(outcome, Position)
        assert outcome.partition == stable_partition(record.key, PARTITIONS)
        assert outcome.offset > last.get(record.key, -1)
        last[record.key] = outcome.offset
    assert chosen.partition == 3


async def test_a_topic_that_does_not_exist_is_an_error_and_is_not_created(
    db: Database, broker: AnyBroker
) -> None:
    bootstrap = broker.bootstrap
    kafka = connection_to(broker)
    await prepare_broker(kafka, db, embedded=is_embedded(broker))
    async with KafkaPublisher(kafka) as publisher:
        outcomes = await publisher.send_many(
            [OutgoingRecord("no.such.topic", "k", b"v"), OutgoingRecord(TOPIC, "k", b"v")]
        )
    assert isinstance(outcomes[0], TransientError)
    assert isinstance(outcomes[1], Position)
    assert "no.such.topic" not in await partitions_of(bootstrap)


async def test_a_publisher_fails_within_its_time_and_works_again_with_the_broker(
    db: Database,
) -> None:
    port = free_port()
    bootstrap = f"127.0.0.1:{port}"
    with pytest.raises(TransientError, match="no broker"):
        await KafkaPublisher(KafkaConnection(bootstrap), timeout_s=1).start()
    broker = await start_broker(port)
    await prepare_broker(KafkaConnection(bootstrap), db, embedded=True)
    async with KafkaPublisher(KafkaConnection(bootstrap), timeout_s=5) as publisher:
        await publisher.send(OutgoingRecord(TOPIC, "k", b"1"))
        await stop_broker(broker)
        async with asyncio.timeout(60):
            with pytest.raises(TransientError):
                await publisher.send(OutgoingRecord(TOPIC, "k", b"2"))
        broker = await start_broker(port)
        await prepare_broker(KafkaConnection(bootstrap), db, embedded=True)
        await publisher.renew()
        await publisher.send(OutgoingRecord(TOPIC, "k", b"3"))
    await stop_broker(broker)


async def test_everybody_agrees_on_one_epoch_and_a_new_log_has_another(db: Database) -> None:
    port = free_port()
    bootstrap = f"127.0.0.1:{port}"
    broker = await start_broker(port)
    await prepare_broker(KafkaConnection(bootstrap), db, embedded=True)
    epochs = set(
        await asyncio.gather(*(ensure_epoch(KafkaConnection(bootstrap), db) for _ in range(4)))
    )
    watcher = EpochWatcher(db, KafkaConnection(bootstrap), poll_s=0.05)
    seen: list[str] = []
    watcher.on_new_log(lambda: seen.append(watcher.current))
    watching = asyncio.create_task(watcher.run())
    await stop_broker(broker)
    broker = await start_broker(port)
    assert await read_epoch(KafkaConnection(bootstrap)) is None
    new = await prepare_broker(KafkaConnection(bootstrap), db, embedded=True)
    await until(lambda: seen == [new], within_s=60)
    watching.cancel()
    async with db.reading() as sql:
        assert await load_epoch(sql) == new
    assert epochs == {next(iter(epochs))}
    assert new not in epochs
    await stop_broker(broker)


async def test_a_log_that_was_lost_unseen_is_found_by_asking_the_broker(
    db: Database, tmp_path: Path
) -> None:
    elsewhere = open_database(f"sqlite+aiosqlite:///{tmp_path / 'other.db'}")
    await elsewhere.create_schema()
    async with running_broker() as bootstrap:
        watcher = EpochWatcher(db, KafkaConnection(bootstrap))
        assert not await watcher.verify()
        epoch = await prepare_broker(KafkaConnection(bootstrap), elsewhere, embedded=True)
        assert await watcher.verify()
        assert watcher.current == epoch
    await elsewhere.close()


async def test_what_hasty_clients_left_in_a_new_log_is_cleared_away(db: Database) -> None:
    port = free_port()
    bootstrap = f"127.0.0.1:{port}"
    broker = await start_broker(port)
    await prepare_broker(KafkaConnection(bootstrap), db, embedded=True)
    hasty = AIOKafkaProducer(bootstrap_servers=bootstrap, request_timeout_ms=2000)
    await hasty.start()
    await hasty.send_and_wait(TOPIC, b"1", partition=5)
    await stop_broker(broker)
    broker = await start_broker(port)
    # Into a topic that is not there: the broker takes it, and the partition is broken from then on.
    await hasty.send_and_wait(TOPIC, b"2", partition=5)
    other = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await other.start()
    await other.send_and_wait("documents.parsed.v1", b"3")  # makes the topic, with another shape
    assert (await partitions_of(bootstrap))["documents.parsed.v1"] != PARTITIONS

    await prepare_broker(KafkaConnection(bootstrap), db, embedded=True)

    assert await partitions_of(bootstrap) == {s.name: s.partitions for s in topic_specs()}
    async with KafkaPublisher(KafkaConnection(bootstrap)) as publisher:
        for partition in range(PARTITIONS):
            for offset in range(2):
                record = OutgoingRecord(TOPIC, "k", b"v", partition=partition)
                assert (await publisher.send(record)).offset == offset
    await hasty.stop()
    await other.stop()
    await stop_broker(broker)


async def test_topics_with_data_of_a_log_that_has_its_epoch_are_left_alone(
    db: Database, broker: AnyBroker
) -> None:
    kafka = connection_to(broker)
    await prepare_broker(kafka, db, embedded=is_embedded(broker))
    async with KafkaPublisher(kafka) as publisher:
        await publisher.send(OutgoingRecord(TOPIC, "k", b"1"))
        await prepare_broker(kafka, db, embedded=is_embedded(broker))
        assert (await publisher.send(OutgoingRecord(TOPIC, "k", b"2"))).offset == 1


async def test_offsets_of_a_group_that_never_committed_are_zero(
    db: Database, broker: AnyBroker
) -> None:
    bootstrap = broker.bootstrap
    kafka = connection_to(broker)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic("t", 2, 1)])
    await admin.close()
    ask = partial(KafkaOffsets(kafka).of_group, "nobody", {("t", 0), ("t", 1)})
    found = await eventually(ask, on=TransientError)  # Kafka has coordinators a while after start
    assert found == {("t", 0): 0, ("t", 1): 0}
