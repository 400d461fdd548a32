"""A record as it is read, and what its headers say."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from libs.contracts.record import SCHEMA, TENANT

ATTEMPT = "attempt"
ORIGIN = "origin"  # `topic/partition/offset` where a retried message was first read
RETRY_ERROR = "retry_error"  # why the try before this one did not succeed
TRACEPARENT = "traceparent"
EVENT_ID = "ce_id"
MAX_TENANT_CHARS = 64


class Record(Protocol):
    """What a broker delivers; the fields that aiokafka's records have."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


Place = tuple[str, int]  # topic, partition; equal to aiokafka's TopicPartition


def header(headers: Iterable[tuple[str, bytes]], name: str) -> str | None:
    """The first header of that name, as text."""
    for key, value in headers:
        if key == name:
            return value.decode(errors="replace")
    return None


def schema_of(record: Record) -> str | None:
    """The name of the schema that the record says it was written with."""
    return header(record.headers, SCHEMA)


def text_headers(record: Record) -> dict[str, str]:
    return {key: value.decode(errors="replace") for key, value in record.headers}


def attempt_of(record: Record) -> int:
    """Which try this delivery is: 1, 2, …; anything unreadable counts as the first."""
    text = header(record.headers, ATTEMPT)
    return max(1, int(text)) if text is not None and text.isdecimal() else 1


def origin_of(record: Record) -> tuple[str, int, int]:
    """Topic, partition and offset where the message was read for the first time."""
    text = header(record.headers, ORIGIN)
    if text is not None and text.count("/") == 2:
        topic, partition, offset = text.split("/")
        if partition.isdecimal() and offset.isdecimal():
            return topic, int(partition), int(offset)
    return record.topic, record.partition, record.offset


def tenant_of(record: Record) -> str:
    """Whose the record says it is; empty: it does not say."""
    return (header(record.headers, TENANT) or "")[:MAX_TENANT_CHARS]


def key_text(record: Record) -> str:
    return (record.key or b"").decode(errors="replace")
