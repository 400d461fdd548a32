"""The AsyncAPI 3 document of every topic, lane, retry and dead-letter topic."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from libs.contracts.store import SchemaStore
from libs.contracts.topics import Topic, load_topics
from libs.contracts.topology import (
    BROADCAST,
    EPOCH_TOPIC,
    TopicSpec,
    dead_letter_topic,
    groups_of,
    retry_topic,
    topic_specs,
)

_CONTENT_TYPE = "application/vnd.apache.avro"
_AVRO = f"{_CONTENT_TYPE};version=1.9.0"
_BINDING = "0.5.0"
_HEADERS = {
    "ce_specversion": "CloudEvents version",
    "ce_id": "Id of this event, new with every emission",
    "ce_type": "The topic whose schema the event has",
    "ce_source": "Service that emitted it",
    "ce_time": "When, in RFC 3339",
    "ce_tenant": "Whose event it is",
    "traceparent": "W3C trace context",
}
_RETRY_HEADERS = {
    "attempt": "Number of the try, from 2; set on retries",
    "origin": "topic/partition/offset of the first delivery; set on retries",
    "retry_error": "Why the try before did not succeed; set on retries",
}
_DEAD_HEADERS = {
    "dlq_reason": "Why it was given up",
    "dlq_topic": "Topic it was read from",
    "dlq_partition": "Partition it was read from",
    "dlq_offset": "Offset it was read at",
    "dlq_attempts": "Tries in all",
}

Json = dict[str, Any]


def asyncapi_source(schemas: Path) -> str:
    """The document as YAML."""
    # Through JSON, so that no object is in it twice: YAML would write an anchor and an alias.
    document = json.loads(json.dumps(asyncapi_document(schemas)))
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def asyncapi_document(schemas: Path) -> Json:
    """The document for a `schemas` folder that passed the checks."""
    topics = list(load_topics(schemas / "topics").values())
    specs = {spec.name: spec for spec in topic_specs(topics)}
    store = SchemaStore(schemas)
    channels = {EPOCH_TOPIC: _epoch_channel(specs[EPOCH_TOPIC])}
    for topic in topics:
        channels |= {name: _channel(topic, specs[name], dead) for name, dead in _names(topic)}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Sluice events",
            "version": "1.0.0",
            "description": "Every topic, with its schema, key, lanes, retries and dead letters. "
            "Values are Confluent-framed Avro: byte 0, a 4-byte schema id, the Avro body.",
        },
        "defaultContentType": _CONTENT_TYPE,
        "channels": channels,
        "operations": dict(op for topic in topics for op in _operations(topic)),
        "components": {
            "messages": {topic.event: _message(topic, store, schemas) for topic in topics},
            "messageTraits": {
                "recordHeaders": _trait(_HEADERS | _RETRY_HEADERS, list(_HEADERS)),
                "deadLetterHeaders": _trait(_DEAD_HEADERS, list(_DEAD_HEADERS)),
            },
        },
    }


def _names(topic: Topic) -> Iterator[tuple[str, bool]]:
    """Every topic name of a topic file, and whether it holds dead letters."""
    for lane in ("", *topic.lanes):
        yield topic.lane(lane), False
    for group in groups_of(topic):
        yield retry_topic(topic.name, group), False
        yield dead_letter_topic(topic.name, group), True


def _channel(topic: Topic, spec: TopicSpec, dead: bool) -> Json:
    message = _dead_message(topic) if dead else {"$ref": f"#/components/messages/{topic.event}"}
    return {
        "address": spec.name,
        "description": topic.description,
        "messages": {topic.event: message},
        "bindings": _channel_binding(spec),
    }


def _epoch_channel(spec: TopicSpec) -> Json:
    return {
        "address": spec.name,
        "description": "One record: the random id of the broker's log. Another id: another log.",
        "messages": {"BrokerEpoch": {"contentType": "text/plain", "payload": {"type": "string"}}},
        "bindings": _channel_binding(spec),
    }


def _channel_binding(spec: TopicSpec) -> Json:
    return {
        "kafka": {
            "topic": spec.name,
            "partitions": spec.partitions,
            "topicConfiguration": {"retention.ms": spec.retention_ms},
            "bindingVersion": _BINDING,
        }
    }


def _message(topic: Topic, store: SchemaStore, schemas: Path) -> Json:
    return {
        "name": topic.event,
        "title": topic.event,
        "summary": topic.description,
        "contentType": _CONTENT_TYPE,
        "traits": [{"$ref": "#/components/messageTraits/recordHeaders"}],
        "payload": {"schemaFormat": _AVRO, "schema": store.newest(topic.name).schema},
        "bindings": _message_binding(topic),
        "examples": list(_examples(schemas / "examples" / topic.name)),
    }


def _dead_message(topic: Topic) -> Json:
    traits = ("recordHeaders", "deadLetterHeaders")
    return {
        "name": topic.event,
        "title": f"{topic.event}, given up",
        "contentType": _CONTENT_TYPE,
        "traits": [{"$ref": f"#/components/messageTraits/{name}"} for name in traits],
        "payload": {"$ref": f"#/components/messages/{topic.event}/payload"},
        "bindings": _message_binding(topic),
    }


def _message_binding(topic: Topic) -> Json:
    return {
        "kafka": {
            "key": {"type": "string", "description": topic.key},
            "schemaIdLocation": "payload",
            "schemaIdPayloadEncoding": "confluent",
            "bindingVersion": _BINDING,
        }
    }


def _examples(directory: Path) -> Iterator[Json]:
    for path in sorted(directory.glob("*.json")):
        yield {"name": path.stem, "payload": json.loads(path.read_text())}


def _trait(headers: dict[str, str], required: Iterable[str]) -> Json:
    properties = {name: {"type": "string", "description": text} for name, text in headers.items()}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"headers": schema}


def _operations(topic: Topic) -> Iterator[tuple[str, Json]]:
    open_names = [topic.lane(lane) for lane in ("", *topic.lanes)]
    for name in open_names:
        for producer in topic.producers:
            yield _operation("send", producer, topic, name)
        if BROADCAST in topic.consumers:
            yield _operation("receive", "every-replica", topic, name)
    for group in groups_of(topic):
        retry, dead = retry_topic(topic.name, group), dead_letter_topic(topic.name, group)
        for name in (*open_names, retry):
            yield _operation("receive", group, topic, name, group)
        yield _operation("send", group, topic, retry)
        yield _operation("send", group, topic, dead)


def _operation(
    action: str, service: str, topic: Topic, name: str, group: str = ""
) -> tuple[str, Json]:
    operation: Json = {
        "action": action,
        "channel": {"$ref": f"#/channels/{name}"},
        "messages": [{"$ref": f"#/channels/{name}/messages/{topic.event}"}],
    }
    if group:
        group_id = {"type": "string", "enum": [group]}
        operation["bindings"] = {"kafka": {"groupId": group_id, "bindingVersion": _BINDING}}
    return f"{service}.{action}.{name}", operation
