"""Confluent-framed Avro: magic byte 0, 4-byte big-endian schema id, Avro body."""

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from functools import cache
from io import BytesIO
from typing import Any

from fastavro import schemaless_reader, schemaless_writer

from libs.contracts import events
from libs.contracts.events import Event
from libs.contracts.mapping import from_fields, to_fields
from libs.contracts.store import HEADER, SchemaStore, SchemaVersion, schema_store
from libs.kernel import PermanentError, TransientError

REGISTRY = "schema-registry"  # as readiness calls it

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Event]
Ask = Callable[[int], Awaitable[Any]]  # the schema of an id; raises UnknownSchemaError


class UnknownSchemaError(PermanentError):
    """The bytes were written with a schema that is none of ours."""

    def __init__(self, schema_id: int, why: str) -> None:
        super().__init__("unknown-schema", f"{schema_id} {why}")
        self.schema_id = schema_id


class Codec:
    """Encodes and decodes events with the schemas of a store.

    Everything that depends on the schema alone is worked out once per event type and per writer's
    schema; a message costs one dictionary look-up, fastavro's own work and the constructor.

    The ids are the committed ones, unless a registry gives them: see `ids_come_later`.
    """

    def __init__(self, store: SchemaStore) -> None:
        self._store = store
        self._ids: dict[int, SchemaVersion] | None = store.committed_ids
        self._written = {found.name: number for number, found in self._ids.items()}
        self._encoders: dict[type[Any], Encode] = {}
        self._decoders: dict[bytes | str, Decode] = {}
        self.ask: Ask | None = None  # who knows the schemas of ids that nobody told us

    def ids_come_later(self, ask: Ask) -> None:
        """A registry gives the ids: until `use_ids` events can't be encoded."""
        self.ask = ask
        self._ids = None
        self._written = {}
        self._forget()

    def use_ids(self, ids: Mapping[int, SchemaVersion]) -> None:
        """The registry's ids of committed schemas. Of several of one schema the first is written,
        all are read.
        """
        self._ids = dict(ids)
        self._written = {}
        for number, found in ids.items():
            self._written.setdefault(found.name, number)
        self._forget()

    def _forget(self) -> None:
        self._encoders.clear()
        self._decoders.clear()

    def encode(self, event: Event) -> bytes:
        """An event as framed Avro, in the newest version of its schema.

        Raises: TransientError while ids are still to come from a registry.
        """
        encoder = self._encoders.get(type(event))
        if encoder is None:
            encoder = self._encoders[type(event)] = self._encoder(type(event))
        return encoder(event)

    def decode(self, value: bytes, schema: str | None = None) -> Event:
        """A typed event from framed Avro written in any version of its schema.

        Args:
            schema: The version's name from the record's header. Where it is one of ours the id does
                not matter: a registry may have numbered its schemas anew since.

        Raises: PermanentError (`undecodable`), UnknownSchemaError.
        """
        if len(value) < HEADER.size or value[0] != 0:
            raise PermanentError("undecodable", "not Confluent-framed Avro")
        known = None if schema is None else self._decoders.get(schema)
        if known is None and schema is not None and (named := self._store.named(schema)):
            known = self._decoders[schema] = self._decoder(named)
        decoder = known or self._decoders.get(value[:5])
        if decoder is None:
            decoder = self._decoders[value[:5]] = self._decoder(self._by_id(value[:5]))
        return decoder(value)

    async def read(self, value: bytes, schema: str | None = None) -> Event:
        """`decode`, which asks the registry, once, for a schema that it does not know.

        Raises: as `decode`; TransientError while the registry is away.
        """
        try:
            return self.decode(value, schema)
        except UnknownSchemaError as exc:
            if self.ask is None or self._ids is None:
                raise
            self._ids[exc.schema_id] = self._learned(exc.schema_id, await self.ask(exc.schema_id))
            return self.decode(value, schema)

    def _learned(self, schema_id: int, schema: Any) -> SchemaVersion:
        name = schema.get("name", "") if isinstance(schema, dict) else ""
        try:
            topic = self._store.topic_of(name.rpartition(".")[2])
        except KeyError:
            raise UnknownSchemaError(schema_id, f"is of {name or schema}, no event here") from None
        return SchemaVersion(topic, f"id-{schema_id}", schema_id, schema)

    def _by_id(self, header: bytes) -> SchemaVersion:
        schema_id = int(HEADER.unpack(header)[1])
        if self._ids is None:
            raise _not_reached()
        if schema_id not in self._ids:
            raise UnknownSchemaError(schema_id, "is the id of no schema")
        return self._ids[schema_id]

    def _encoder(self, event_type: type[Any]) -> Encode:
        newest = self._store.newest(self._store.topic_of(event_type.__name__))
        if newest.name not in self._written:
            raise _not_reached()
        header, schema = HEADER.pack(0, self._written[newest.name]), newest.parsed
        fields = to_fields(newest.schema)

        def encode(event: Any) -> bytes:
            buffer = BytesIO()
            buffer.write(header)
            schemaless_writer(buffer, schema, fields(event))
            return buffer.getvalue()

        return encode

    def _decoder(self, written: SchemaVersion) -> Decode:
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


def _not_reached() -> TransientError:
    return TransientError("the schema registry was not reached yet", missing=REGISTRY)


@cache
def default_codec() -> Codec:
    """The codec over the committed schemas."""
    return Codec(schema_store())


def encode(event: Event) -> bytes:
    """An event as framed Avro, in the newest version of its schema."""
    return default_codec().encode(event)


def decode(value: bytes, schema: str | None = None) -> Event:
    """A typed event from framed Avro written in any version: see `Codec.decode`.

    Raises: PermanentError (`undecodable`, `unknown-schema`).
    """
    return default_codec().decode(value, schema)


async def read(value: bytes, schema: str | None = None) -> Event:
    """`decode` for records that others may have written: see `Codec.read`."""
    return await default_codec().read(value, schema)
