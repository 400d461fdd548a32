"""Confluent-framed Avro: magic byte 0, 4-byte big-endian schema id, Avro body."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from io import BytesIO
from typing import Any

from fastavro import schemaless_reader, schemaless_writer

from libs.contracts import events
from libs.contracts.events import Event
from libs.contracts.mapping import from_fields, to_fields
from libs.contracts.store import HEADER, SchemaStore, schema_store
from libs.kernel import PermanentError

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Event]


class Codec:
    """Encodes and decodes events with the schemas of a store.

    Everything that depends on the schema alone is worked out once per event type and per writer's
    schema id; a message costs one dictionary look-up, fastavro's own work and the constructor.
    """

    def __init__(self, store: SchemaStore) -> None:
        self._store = store
        self._encoders: dict[type[Any], Encode] = {}
        self._decoders: dict[bytes, Decode] = {}

    def encode(self, event: Event) -> bytes:
        """An event as framed Avro, in the newest version of its schema."""
        encoder = self._encoders.get(type(event))
        if encoder is None:
            encoder = self._encoders[type(event)] = self._encoder(type(event))
        return encoder(event)

    def decode(self, value: bytes) -> Event:
        """A typed event from framed Avro written in any version of its schema.

        Raises: PermanentError (`undecodable`, `unknown-schema`).
        """
        decoder = self._decoders.get(value[:5])
        if decoder is None:
            decoder = self._decoders[value[:5]] = self._decoder(value[:5])
        return decoder(value)

    def _encoder(self, event_type: type[Any]) -> Encode:
        newest = self._store.newest(self._store.topic_of(event_type.__name__))
        header, schema = newest.header, newest.parsed
        fields = to_fields(newest.schema)

        def encode(event: Any) -> bytes:
            buffer = BytesIO()
            buffer.write(header)
            schemaless_writer(buffer, schema, fields(event))
            return buffer.getvalue()

        return encode

    def _decoder(self, header: bytes) -> Decode:
        if len(header) < HEADER.size or header[0] != 0:
            raise PermanentError("undecodable", "not Confluent-framed Avro")
        written = self._store.by_id(HEADER.unpack(header)[1])
        newest = self._store.newest(written.topic)
        event_type = getattr(events, self._store.event_of(written.topic))
        build = from_fields(newest.schema, event_type, same_order=written is newest)
        writer = written.parsed
        reader = None if written is newest else newest.parsed

        def decode(value: bytes) -> Event:
            buffer = BytesIO(value)
            buffer.seek(HEADER.size)
            try:
                fields = schemaless_reader(buffer, writer, reader)
                if reader is not None:  # defaults that were filled in belong to the schema
                    fields = deepcopy(fields)
                event: Event = build(fields)
            except Exception as exc:
                raise PermanentError("undecodable", f"{type(exc).__name__}: {exc}") from exc
            if buffer.read(1):
                raise PermanentError("undecodable", "bytes left over after the event")
            return event

        return decode


@cache
def default_codec() -> Codec:
    """The codec over the committed schemas."""
    return Codec(schema_store())


def encode(event: Event) -> bytes:
    """An event as framed Avro, in the newest version of its schema."""
    return default_codec().encode(event)


def decode(value: bytes) -> Event:
    """A typed event from framed Avro written in any version.

    Raises: PermanentError (`undecodable`, `unknown-schema`).
    """
    return default_codec().decode(value)
