"""Rules on the Avro schemas: each alone, each against all earlier ones, and their ids."""

import dataclasses
import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import avro.schema
import fastavro
import yaml
from avro.compatibility import (
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
)
from fastavro.schema import SchemaParseException, UnknownType

from libs.contracts.generate import fingerprint
from libs.contracts.mapping import AvroSchema, named_type, optional_type

_FIELD = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def _topics(schemas: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((schemas / "topics").glob("*.yaml")):
        yield yaml.safe_load(path.read_text())


def _versions(schemas: Path, topic: str) -> list[tuple[str, AvroSchema]]:
    files = sorted((schemas / "avro" / topic).glob("*.avsc"))
    return [(path.stem, json.loads(path.read_text())) for path in files]


def schemas_are_valid(schemas: Path) -> Iterator[str]:
    """Every version is valid Avro that a typed event can hold, and fits its topic file."""
    for topic in _topics(schemas):
        versions = _versions(schemas, topic["name"])
        for number, (version, schema) in enumerate(versions, start=1):
            if version != f"{number:03}":
                yield f"{topic['name']}: version {number:03} is missing"
                break
            where = f"{topic['name']}/{version}"
            yield from (f"{where}: {problem}" for problem in _schema_problems(schema, topic))


def _schema_problems(schema: AvroSchema, topic: dict[str, Any]) -> Iterator[str]:
    try:
        fastavro.parse_schema(schema)
    except (SchemaParseException, UnknownType) as exc:
        yield f"not valid Avro: {exc}"
        return
    if not isinstance(schema, dict) or schema["type"] != "record":
        yield "not a record"
        return
    if schema["name"] != topic["event"]:
        yield f"the record is {schema['name']}, the topic's event is {topic['event']}"
    namespace = f"sluice.{topic['name'].partition('.')[0]}"
    if schema.get("namespace") != namespace:
        yield f"the namespace must be {namespace}"
    if not schema.get("doc"):
        yield "the record has no doc"
    key = {"name": topic["key"], "type": "string"}
    if not any(field | key == field for field in schema["fields"]):
        yield f"the key {topic['key']} is no string field"
    yield from _record_problems(schema)


def _record_problems(schema: AvroSchema) -> Iterator[str]:
    defaulted = ""
    for field in schema["fields"]:
        name = field["name"]
        if not _FIELD.fullmatch(name):
            yield f"field {name} is not snake_case"
        if "default" not in field and defaulted:
            yield f"field {name} has no default but follows {defaulted}, which has one"
        defaulted = name if "default" in field else defaulted
        yield from _type_problems(name, field["type"])


def _type_problems(name: str, schema: AvroSchema) -> Iterator[str]:
    try:
        inner = optional_type(schema) if isinstance(schema, list) else schema
        if not isinstance(inner, dict):
            return
        if inner["type"] in ("record", "enum"):
            yield from _named_problems(inner, named_type(inner))
        else:
            yield from _type_problems(name, inner.get("items", inner.get("values")))
    except (TypeError, LookupError) as exc:
        yield f"field {name}: {exc}"


def _named_problems(schema: AvroSchema, cls: type[Any]) -> Iterator[str]:
    """A hand-written type has everything that the schema has."""
    if schema["type"] == "enum":
        wanted, found = schema["symbols"], set(getattr(cls, "__members__", ()))
    else:
        wanted = [field["name"] for field in schema["fields"]]
        found = {field.name for field in dataclasses.fields(cls)}
        yield from _record_problems(schema)
    if missing := [name for name in wanted if name not in found]:
        yield f"{cls.__name__} in plan.py lacks {', '.join(missing)}"


def versions_agree(schemas: Path) -> Iterator[str]:
    """FULL_TRANSITIVE: of any two versions each reads what the other wrote."""
    for topic in _topics(schemas):
        parsed = [
            (version, avro.schema.parse(json.dumps(schema)))
            for version, schema in _versions(schemas, topic["name"])
        ]
        for (old, old_schema), (new, new_schema) in combinations(parsed, 2):
            for reader, writer, direction in (
                (new_schema, old_schema, f"{new} cannot read what {old} wrote"),
                (old_schema, new_schema, f"{old} cannot read what {new} wrote"),
            ):
                checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
                result = checker.get_compatibility(reader, writer)
                if result.compatibility is not SchemaCompatibilityType.compatible:
                    yield f"{topic['name']}: {direction}: {_reasons(result)}"


def _reasons(result: SchemaCompatibilityResult) -> str:
    return "; ".join(sorted(result.messages))


def ids_are_append_only(schemas: Path) -> Iterator[str]:
    """Every version has one id for ever, counted from 1, and never changes."""
    ids: dict[str, dict[str, Any]] = json.loads((schemas / "ids.json").read_text())
    files = {
        f"{path.parent.name}/{path.stem}": json.loads(path.read_text())
        for path in sorted((schemas / "avro").glob("*/*.avsc"))
    }
    for key in files.keys() - ids.keys():
        yield f"ids.json: {key} has no id: run python -m libs.contracts.generate"
    for expected, (key, entry) in enumerate(ids.items(), start=1):
        if entry["id"] != expected:
            yield f"ids.json: {key} has the id {entry['id']}, in its place belongs {expected}"
        if key not in files:
            yield f"ids.json: {key} has no file; what was written once must stay readable"
        elif fingerprint(files[key]) != entry["sha256"]:
            yield f"{key} was edited after it got its id: add a new version instead"
