import dataclasses
from typing import Any

import pytest

from libs.contracts import ExecutionMode
from libs.contracts.python_source import events_source

MODE = {"type": "enum", "name": "ExecutionMode", "symbols": ["CLARIFY", "RAG_CHAT"]}


def record(*fields: dict[str, Any], doc: str = "A thing happened.") -> dict[str, Any]:
    return {"type": "record", "name": "ThingHappened", "doc": doc, "fields": list(fields)}


def run(source: str) -> Any:
    module: dict[str, Any] = {"__name__": "generated"}
    exec(compile(source, "generated", "exec"), module)  # noqa: S102 - the source is the subject
    return module["ThingHappened"]


def test_the_class_has_the_fields_types_and_defaults_of_the_schema() -> None:
    cls = run(
        events_source(
            [
                record(
                    {"name": "id", "type": "string"},
                    {"name": "share", "type": "double"},
                    {"name": "marks", "type": {"type": "map", "values": "long"}},
                    {"name": "note", "type": ["null", "string"], "default": None},
                    {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
                    {"name": "size", "type": "long", "default": 3},
                    {"name": "quote", "type": "string", "default": 'say "hi"\n'},
                    {"name": "done", "type": "boolean", "default": False},
                    {"name": "mode", "type": MODE, "default": "RAG_CHAT"},
                )
            ]
        )
    )
    assert {field.name: field.type for field in dataclasses.fields(cls)} == {
        "id": str,
        "share": float,
        "marks": dict[str, int],
        "note": str | None,
        "tags": list[str],
        "size": int,
        "quote": str,
        "done": bool,
        "mode": ExecutionMode,
    }
    event = cls("t1", 0.5, {})
    assert (event.note, event.tags, event.size, event.quote) == (None, [], 3, 'say "hi"\n')
    assert (event.done, event.mode) == (False, ExecutionMode.RAG_CHAT)
    assert cls.__doc__ == "A thing happened."
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.size = 4


def test_long_docs_are_wrapped_and_docs_of_fields_are_comments() -> None:
    long = "Every word counts and there are many of them. " * 5
    source = events_source([record({"name": "id", "type": "string", "doc": long}, doc=long)])
    assert max(len(line) for line in source.splitlines()) <= 100
    assert " ".join((run(source).__doc__ or "").split()) == long.strip()
    assert "    # Every word counts" in source


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"name": "x", "type": "text"}, "no Python type for 'text'"),
        ({"name": "x", "type": ["string", "long"]}, "only unions of null and one type"),
        ({"name": "x", "type": {"type": "array", "items": "string"}, "default": ["a"]}, "x: no"),
    ],
)
def test_what_a_typed_event_cannot_hold_is_refused(field: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        events_source([record(field)])
