"""Confluent-framed Avro: magic byte 0, 4-byte big-endian schema id, Avro body."""

import json
import struct
from dataclasses import asdict
from functools import cache
from io import BytesIO
from typing import Any

import fastavro

from libs.contracts import events
from libs.contracts.events import Event, TurnPlanned
from libs.contracts.plan import ConversationExecutionPlan, ExecutionMode
from libs.contracts.record import OutgoingRecord
from libs.contracts.topics import SCHEMAS_DIR, Topic, load_topics
from libs.kernel import PermanentError

_HEADER = struct.Struct(">bI")


@cache
def topic_of(event_name: str) -> Topic:
    """The topic of an event class's name. Raises: KeyError."""
    return {topic.event: topic for topic in load_topics().values()}[event_name]


@cache
def _ids() -> dict[str, int]:
    return dict(json.loads((SCHEMAS_DIR / "ids.json").read_text()))


@cache
def _schema(topic: str, version: str) -> Any:
    path = SCHEMAS_DIR / "avro" / topic / f"{version}.avsc"
    return fastavro.parse_schema(json.loads(path.read_text()))


@cache
def _writer(event_name: str) -> tuple[bytes, Any]:
    topic = topic_of(event_name).name
    version = max(v for t, v in (k.split("/") for k in _ids()) if t == topic)
    return _HEADER.pack(0, _ids()[f"{topic}/{version}"]), _schema(topic, version)


@cache
def _reader(schema_id: int) -> tuple[Any, Any, type[Any]]:
    for key, known in _ids().items():
        if known == schema_id:
            topic, version = key.split("/")
            event_type = getattr(events, load_topics()[topic].event)
            return _schema(topic, version), _writer(event_type.__name__)[1], event_type
    raise PermanentError("unknown-schema", f"no schema has the id {schema_id}")


def encode(event: Event) -> bytes:
    """An event as framed Avro, in the newest version of its schema."""
    header, schema = _writer(type(event).__name__)
    buffer = BytesIO()
    buffer.write(header)
    fastavro.schemaless_writer(buffer, schema, asdict(event))
    return buffer.getvalue()


def decode(value: bytes) -> Event:
    """A typed event from framed Avro written in any version.

    Raises: PermanentError (`undecodable`, `unknown-schema`).
    """
    if len(value) < _HEADER.size or value[0] != 0:
        raise PermanentError("undecodable", "not Confluent-framed Avro")
    writer, reader, event_type = _reader(_HEADER.unpack_from(value)[1])
    try:
        fields = fastavro.schemaless_reader(BytesIO(value[_HEADER.size :]), writer, reader)
        if event_type is TurnPlanned:
            plan = dict(fields["plan"])
            plan["execution_mode"] = ExecutionMode(plan["execution_mode"])
            fields["plan"] = ConversationExecutionPlan(**plan)
        event: Event = event_type(**fields)
    except Exception as exc:
        raise PermanentError("undecodable", str(exc)) from exc
    return event


def to_record(event: Event, *, lane: str = "", partition: int | None = None) -> OutgoingRecord:
    """The event with its topic (or lane) and key."""
    topic = topic_of(type(event).__name__)
    key = str(getattr(event, topic.key))
    return OutgoingRecord(topic.lane(lane), key, encode(event), {}, partition)
