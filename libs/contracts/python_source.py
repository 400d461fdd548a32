"""The source text of `events.py`, from the newest schema of every topic."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from libs.contracts.mapping import AvroSchema, optional_type

_WIDTH = 100
_PYTHON = {
    "string": "str",
    "long": "int",
    "int": "int",
    "double": "float",
    "float": "float",
    "boolean": "bool",
    "bytes": "bytes",
}
_HEAD = '"""Typed events, generated from schemas/avro by `python -m libs.contracts.generate`."""'


def events_source(schemas: Iterable[AvroSchema]) -> str:
    """A module with one frozen dataclass for each record schema, in their order, and their union.

    Raises:
        TypeError: a schema uses what a typed event does not support (message says what).
    """
    records = list(schemas)
    body = "\n\n\n".join(_class(record) for record in records)
    names = "\n    | ".join(record["name"] for record in records)
    return f"{_HEAD}\n\n{_imports(records, body)}\n\n\n{body}\n\n\nEvent = (\n    {names}\n)\n"


def _imports(records: list[AvroSchema], body: str) -> str:
    helpers = "dataclass, field" if "field(default_factory=" in body else "dataclass"
    annotations = " ".join(python_type(f["type"]) for record in records for f in record["fields"])
    nested = sorted({*re.findall(r"[A-Z]\w+", annotations)} - {"None"})
    plan = f"\n\nfrom libs.contracts.plan import {', '.join(nested)}" if nested else ""
    return f"from dataclasses import {helpers}{plan}"


def _class(record: AvroSchema) -> str:
    fields = "\n".join(line for field in record["fields"] for line in _field(field))
    return (
        f"@dataclass(frozen=True, slots=True)\nclass {record['name']}:\n"
        f"{_docstring(record['doc'])}\n\n{fields}"
    )


def _docstring(text: str) -> str:
    if '"""' in text or "\\" in text:
        raise TypeError(f"a doc may hold neither quotes in threes nor backslashes: {text}")
    lines = textwrap.wrap(text, _WIDTH - len('    """"""'))
    if len(lines) == 1:
        return f'    """{lines[0]}"""'
    indented = "\n".join(f"    {line}" for line in lines)
    return f'    """{indented.lstrip()}\n    """'


def _field(field: dict[str, Any]) -> Iterator[str]:
    for line in textwrap.wrap(field.get("doc", ""), _WIDTH - len("    # ")):
        yield f"    # {line}"
    default = f" = {_default(field)}" if "default" in field else ""
    yield f"    {field['name']}: {python_type(field['type'])}{default}"


def python_type(schema: AvroSchema) -> str:
    """The annotation of a field of this Avro type. Raises: TypeError."""
    if isinstance(schema, list):
        return f"{python_type(optional_type(schema))} | None"
    if isinstance(schema, str):
        if schema not in _PYTHON:
            raise TypeError(f"no Python type for {schema!r}")
        return _PYTHON[schema]
    match schema["type"]:
        case "record" | "enum":
            name: str = schema["name"]
            return name
        case "array":
            return f"list[{python_type(schema['items'])}]"
        case "map":
            return f"dict[str, {python_type(schema['values'])}]"
        case other:
            return python_type(other)


def _default(field: dict[str, Any]) -> str:
    value = field["default"]
    if value in ([], {}):
        return f"field(default_factory={type(value).__name__})"
    if isinstance(field["type"], dict) and field["type"]["type"] == "enum":
        return f"{field['type']['name']}.{value}"
    if isinstance(value, list | dict) or field["type"] == "bytes":
        raise TypeError(f"{field['name']}: no Python source for the default {value!r}")
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
