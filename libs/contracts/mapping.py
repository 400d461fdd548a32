"""Between the plain values Avro reads and writes and our dataclasses, compiled from a schema.

Nested records and enums are the hand-written types of `libs.contracts.plan`, found by their name.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from libs.contracts import plan

Convert = Callable[[Any], Any]
PRIMITIVES = frozenset({"string", "long", "int", "double", "float", "boolean", "bytes"})
AvroSchema = Any  # parsed JSON: a name, a union's list or a type's dict


def named_type(schema: AvroSchema) -> type[Any]:
    """The Python class of a nested record or enum. Raises: LookupError."""
    try:
        found: type[Any] = getattr(plan, schema["name"])
    except AttributeError:
        raise LookupError(f"libs.contracts.plan has no class {schema['name']}") from None
    return found


def from_fields(schema: AvroSchema, cls: type[Any], *, same_order: bool) -> Convert:
    """A function from a record's field dict to `cls`.

    `same_order` promises that the dict's order is the schema's: true for what was written in this
    very version. Where it is the class's too, positional arguments save time.
    """
    converters = _converters(schema, _reading(same_order))
    names = [field["name"] for field in schema["fields"]]
    positional = same_order and names == [f.name for f in dataclasses.fields(cls)][: len(names)]

    def build(fields: dict[str, Any]) -> Any:
        for name, convert in converters:
            fields[name] = convert(fields[name])
        return cls(*fields.values()) if positional else cls(**fields)

    def build_plain(fields: dict[str, Any]) -> Any:
        return cls(*fields.values())

    return build_plain if positional and not converters else build


def to_fields(schema: AvroSchema) -> Callable[[Any], dict[str, Any]]:
    """A function from an instance of the schema's class to the dict that Avro writes."""
    names = [field["name"] for field in schema["fields"]]
    values = attrgetter(*names) if len(names) > 1 else lambda it: (getattr(it, names[0]),)
    converters = _converters(schema, _writing)

    def fields(instance: Any) -> dict[str, Any]:
        found = dict(zip(names, values(instance), strict=True))
        for name, convert in converters:
            found[name] = convert(found[name])
        return found

    return fields


Named = Callable[[AvroSchema], Convert | None]


def _converters(schema: AvroSchema, named: Named) -> list[tuple[str, Convert]]:
    found = ((f["name"], _converter(f["type"], named)) for f in schema["fields"])
    return [(name, convert) for name, convert in found if convert is not None]


def _converter(schema: AvroSchema, named: Named) -> Convert | None:
    """How a value of this type is converted; None: it stays as it is."""
    if isinstance(schema, list):
        inner = _converter(optional_type(schema), named)
        return inner and partial(_convert_optional, inner)
    if not isinstance(schema, dict):
        if schema not in PRIMITIVES:
            raise TypeError(f"{schema!r}: spell a nested type out where it is used, once")
        return None
    match schema["type"]:
        case "record" | "enum":
            return named(schema)
        case "array":
            inner = _converter(schema["items"], named)
            return inner and partial(_convert_list, inner)
        case "map":
            inner = _converter(schema["values"], named)
            return inner and partial(_convert_map, inner)
        case _:
            return None


def optional_type(union: list[AvroSchema]) -> AvroSchema:
    """The type of a union of null and one other. Raises: TypeError for other unions."""
    others = [branch for branch in union if branch != "null"]
    if len(others) != 1 or len(union) != 2:
        raise TypeError(f"only unions of null and one type are supported, not {union}")
    return others[0]


def _convert_optional(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _convert_list(convert: Convert, values: list[Any]) -> list[Any]:
    return [convert(value) for value in values]


def _convert_map(convert: Convert, values: dict[str, Any]) -> dict[str, Any]:
    return {key: convert(value) for key, value in values.items()}


def _reading(same_order: bool) -> Named:
    def named(schema: AvroSchema) -> Convert:
        cls = named_type(schema)
        if schema["type"] == "enum":
            return cls
        return from_fields(schema, cls, same_order=same_order)

    return named


def _writing(schema: AvroSchema) -> Convert | None:
    # A StrEnum member is the string that Avro wants.
    return None if schema["type"] == "enum" else to_fields(schema)
