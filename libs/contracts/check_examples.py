"""Rules on the examples: written in any version, each is read by the newest as it was meant."""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from fastavro import schemaless_writer
from fastavro.validation import ValidationError, validate

from libs.contracts.codec import Codec
from libs.contracts.mapping import AvroSchema, optional_type
from libs.contracts.store import SchemaStore, SchemaVersion
from libs.kernel import PermanentError


def examples_read(schemas: Path) -> Iterator[str]:
    """Every example fits the newest schema, round trips as an event, and older ones are read."""
    store = SchemaStore(schemas)
    codec = Codec(store)
    for newest in store.newest_of_all():
        versions = store.versions(newest.topic)
        for path in sorted((schemas / "examples" / newest.topic).glob("*.json")):
            example = json.loads(path.read_text())
            if found := _misfit(example, newest) or _unread(example, versions, codec):
                yield f"examples/{newest.topic}/{path.name}: {found}"


def _misfit(example: Any, newest: SchemaVersion) -> str:
    try:
        validate(example, newest.parsed)
    except ValidationError as exc:
        return f"does not fit version {newest.version}: {exc}"
    return "" if _cut(example, newest.schema) == example else "has fields that the schema has not"


def _unread(example: Any, versions: list[SchemaVersion], codec: Codec) -> str:
    """Why a version of the example, as that version could write it, is not read; '': all are."""
    for version in versions:
        value = version.header + _written(_cut(example, version.schema), version.parsed)
        try:
            event = codec.decode(value)
        except PermanentError as exc:
            return f"written in version {version.version} it is no event: {exc.detail}"
        if version is versions[-1] and codec.encode(event) != value:
            return "comes back as another event"
    return ""


def _written(example: Any, parsed: Any) -> bytes:
    buffer = BytesIO()
    schemaless_writer(buffer, parsed, example)
    return buffer.getvalue()


def _cut(value: Any, schema: AvroSchema) -> Any:
    """The value without the fields that the schema does not have."""
    if isinstance(schema, list):
        return None if value is None else _cut(value, optional_type(schema))
    if not isinstance(schema, dict):
        return value
    match schema["type"]:
        case "record":
            fields = {field["name"]: field["type"] for field in schema["fields"]}
            return {name: _cut(value[name], fields[name]) for name in fields if name in value}
        case "array":
            return [_cut(item, schema["items"]) for item in value]
        case "map":
            return {key: _cut(item, schema["values"]) for key, item in value.items()}
        case _:
            return value
