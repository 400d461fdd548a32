"""A broker that wants TLS and a password: everything works with it, and what is wrong is named."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from libs.contracts import DocumentUploaded, TurnControl, to_record
from libs.eventbus import Consumer, KafkaConnection, Listener, Subscriptions
from libs.eventbus.backlog import KafkaBacklogs
from libs.eventbus.preparation import prepare_broker
from libs.eventbus.publisher import KafkaPublisher
from libs.eventbus.reaching import (
    NOT_TRUSTED,
    OTHER_MECHANISM,
    OTHER_PROTOCOL,
    UNREACHABLE,
    USER_REFUSED,
    problem_of,
)
from libs.eventbus.security import KafkaSecurity
from libs.kernel import TransientError
from libs.storage.sql import Database
from tests.integration.eventbus.kafka_bus import GROUP
from tests.ports import free_port
from tests.servers.kafka import PASSWORD, USER, Kafka
from tests.suites.eventbus import TOPIC, record, until

pytestmark = [pytest.mark.integration, pytest.mark.on_server]


def secured(kafka: Kafka, **changes: Any) -> KafkaConnection:
    security = KafkaSecurity("SASL_SSL", "SCRAM-SHA-512", USER, PASSWORD, kafka.ca_file)
    return KafkaConnection(
        kafka.secure_bootstrap, security=replace(security, **changes), idempotence=True
    )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_every_client_gets_in(kafka: Kafka, db: Database, mechanism: str) -> None:
    connection = secured(kafka, mechanism=mechanism)
    await prepare_broker(connection, db)
    handled, heard = [], []

    async def handle(event: DocumentUploaded) -> None:
        handled.append(event.document_id)

    async def hear(event: TurnControl) -> None:
        heard.append(event.turn_id)

    stop = asyncio.Event()
    consumer = Consumer(
        connection, db, Subscriptions().on(DocumentUploaded, handle), group_id=GROUP
    )
    listener = Listener(connection, TurnControl, hear)
    async with asyncio.TaskGroup() as tasks, KafkaPublisher(connection) as publisher:
        tasks.create_task(consumer.run(stop))
        tasks.create_task(listener.run(stop))
        await asyncio.wait_for(listener.ready.wait(), 60)
        stored = await publisher.send(record(f"of {mechanism}"))
        await publisher.send(to_record(TurnControl("t1", mechanism, "cancel")))
        await until(lambda: f"of {mechanism}" in handled and mechanism in heard)
        stop.set()
    backlogs = await KafkaBacklogs(connection).of_groups({GROUP: [(TOPIC, stored.partition)]})
    assert backlogs[GROUP][TOPIC, stored.partition].waiting == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"password": "wrong"}, USER_REFUSED),
        ({"mechanism": "PLAIN", "password": "wrong"}, USER_REFUSED),
        ({"mechanism": "SCRAM-SHA-256"}, OTHER_MECHANISM),
        ({"ca_file": None}, NOT_TRUSTED),
        ({"protocol": "SSL", "username": None, "password": None}, OTHER_PROTOCOL),
        ({"protocol": "SASL_PLAINTEXT", "ca_file": None}, OTHER_PROTOCOL),
    ],
)
async def test_what_keeps_a_client_out_is_named(
    kafka: Kafka, changes: dict[str, Any], problem: str | None
) -> None:
    assert await problem_of(secured(kafka, **changes)) == problem


async def test_a_secured_client_finds_an_open_port_or_nobody(kafka: Kafka) -> None:
    assert await problem_of(replace(secured(kafka), bootstrap=kafka.bootstrap)) == OTHER_PROTOCOL
    nobody = replace(secured(kafka), bootstrap=f"127.0.0.1:{free_port()}")
    assert await problem_of(nobody) == UNREACHABLE


async def test_preparing_says_what_to_check_when_it_gives_up(kafka: Kafka, db: Database) -> None:
    with pytest.raises(TransientError, match="KAFKA_SASL_PASSWORD") as refused:
        await prepare_broker(secured(kafka, password="s3cret"), db, timeout_s=1.0)
    assert "s3cret" not in str(refused.value)
