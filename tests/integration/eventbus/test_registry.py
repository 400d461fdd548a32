"""Schemas in a registry, with Confluent's own client as the peer, in both directions."""

import dataclasses
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from libs.contracts import DocumentUploaded, OutgoingRecord, load_topics
from libs.contracts.codec import Codec, UnknownSchemaError
from libs.contracts.store import SchemaStore
from libs.eventbus import Subscriptions
from libs.eventbus.registry import COMPATIBILITY, USER_REFUSED, SchemaRegistry
from libs.kernel import PermanentError, TransientError
from tests.integration.eventbus.kafka_bus import KafkaBus
from tests.standins.schema_registry import RegistryServer
from tests.suites.eventbus import until

pytestmark = pytest.mark.integration

TOPIC = "documents.uploaded.v1"
UPLOADED = DocumentUploaded("acme", "d1", 1, "a.txt", "text/plain", "acme/d1/original", 5)
VALUE = SerializationContext(TOPIC, MessageField.VALUE)
STORE = SchemaStore()


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer(("sluice", "pa55"), first_id=500) as started:
        yield started


@pytest.fixture
async def registry(server: RegistryServer) -> AsyncIterator[SchemaRegistry]:
    async with SchemaRegistry(server.url) as opened:
        yield opened


async def codec_of(registry: SchemaRegistry) -> Codec:
    codec = Codec(STORE)
    codec.ids_come_later(registry.schema)
    codec.use_ids(await registry.register(STORE))
    return codec


def schema_text(**changes: Any) -> str:
    return json.dumps({**STORE.newest(TOPIC).schema, **changes})


async def test_every_topic_and_lane_has_its_subject_and_a_repeat_changes_nothing(
    registry: SchemaRegistry, server: RegistryServer
) -> None:
    ids = await registry.register(STORE)
    assert min(ids) == 500
    assert {found.name for found in ids.values()} == {v.name for v in STORE.newest_of_all()}
    for topic in load_topics().values():
        for lane in ("", *topic.lanes):
            assert server.level_of(f"{topic.lane(lane)}-value") == COMPATIBILITY
    server.requests.clear()
    assert await registry.register(STORE) == ids
    assert not [request for request in server.requests if request.startswith("PUT")]


async def test_the_peer_reads_what_we_write_and_we_read_what_it_writes(
    registry: SchemaRegistry, server: RegistryServer
) -> None:
    codec = await codec_of(registry)
    peer = SchemaRegistryClient({"url": server.url})
    read = AvroDeserializer(peer)
    assert read(codec.encode(UPLOADED), VALUE) == dataclasses.asdict(UPLOADED)
    write = AvroSerializer(peer, schema_text(doc="as another program has it"))
    value = write(dataclasses.asdict(UPLOADED), VALUE)
    with pytest.raises(UnknownSchemaError):
        codec.decode(value)  # a version that it registered itself
    assert await codec.read(value) == UPLOADED
    server.requests.clear()
    assert await codec.read(value) == UPLOADED
    assert server.requests == []


async def test_the_peers_own_registry_in_memory_agrees() -> None:
    peer = SchemaRegistryClient.new_client({"url": "mock://"})
    peer.register_schema("others-value", Schema(schema_text(name="Other"), "AVRO"))
    codec = Codec(STORE)
    codec.use_ids(
        {
            peer.register_schema(f"{v.topic}-value", Schema(json.dumps(v.schema), "AVRO")): v
            for v in STORE.newest_of_all()
        }
    )
    read, write = AvroDeserializer(peer), AvroSerializer(peer, schema_text())
    assert read(codec.encode(UPLOADED), VALUE) == dataclasses.asdict(UPLOADED)
    assert codec.decode(write(dataclasses.asdict(UPLOADED), VALUE)) == UPLOADED


async def test_a_schema_that_is_not_compatible_is_refused_in_the_registrys_words(
    registry: SchemaRegistry, server: RegistryServer
) -> None:
    other = [{"name": "document_id", "type": "int"}]
    peer = SchemaRegistryClient({"url": server.url})
    peer.register_schema(f"{TOPIC}-value", Schema(schema_text(fields=other), "AVRO"))
    with pytest.raises(PermanentError, match="incompatible with an earlier schema") as refused:
        await registry.register(STORE)
    assert refused.value.reason == "schema-refused"
    assert f"{TOPIC}/001 as {TOPIC}-value" in refused.value.detail
    assert "pa55" not in refused.value.detail


async def test_away_or_closed_to_us_it_is_waited_for_by_name(server: RegistryServer) -> None:
    async with SchemaRegistry(server.url.replace("pa55", "wr0ng")) as stranger:
        with pytest.raises(TransientError) as refused:
            await stranger.register(STORE)
    assert refused.value.missing == USER_REFUSED
    assert "wr0ng" not in str(refused.value)
    server.stop()
    async with SchemaRegistry(server.url) as away:
        with pytest.raises(TransientError, match=server.host) as not_there:
            await away.schema(1)
    assert not_there.value.missing == "schema-registry"
    assert "pa55" not in str(not_there.value)


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://host", "http://"])
def test_an_address_that_cannot_work_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(PermanentError, match="SCHEMA_REGISTRY_URL must be like https"):
        SchemaRegistry(url)


async def test_a_record_of_an_unknown_schema_waits_while_the_registry_is_away(
    bus: KafkaBus, server: RegistryServer, registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither given up nor does it hold up others."""
    codec = await codec_of(registry)
    monkeypatch.setattr("libs.contracts.codec.default_codec", lambda: codec)
    peer = SchemaRegistryClient({"url": server.url})
    theirs = AvroSerializer(peer, schema_text(doc="of another program"))
    value = theirs(dataclasses.asdict(UPLOADED), VALUE)
    known = dataclasses.replace(UPLOADED, document_id="d2")
    done: list[str] = []

    async def handle(event: DocumentUploaded) -> None:
        done.append(event.document_id)

    server.stop()
    await bus.start(Subscriptions().on(DocumentUploaded, handle))
    await bus.publish(OutgoingRecord(TOPIC, "d1", value, partition=0))
    await until(lambda: bus.problem() == "schema-registry" or done == ["d1"])
    await bus.publish(OutgoingRecord(TOPIC, "d2", codec.encode(known), partition=1))
    assert done == []
    server.start()
    await until(lambda: sorted(done) == ["d1", "d2"])
    assert bus.dead == []
