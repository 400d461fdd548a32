"""Rules on the files of `schemas/`: which there must be, and what a topic file says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from libs.contracts.topology import BROADCAST

_TOPIC = re.compile(r"[a-z][a-z-]*(\.[a-z][a-z-]*)+\.v[1-9]\d*")
_EVENT = re.compile(r"([A-Z][a-z0-9]+)+")
_LANE = re.compile(r"[a-z]+")
_REQUIRED: dict[str, type[Any]] = {
    "name": str,
    "event": str,
    "description": str,
    "key": str,
    "partitions": int,
    "retention_hours": int,
    "compatibility": str,
    "producers": list,
    "consumers": list,
}
_OPTIONAL: dict[str, type[Any]] = {"lanes": list}
_TOP_LEVEL = {"topics", "avro", "examples", "ids.json", "asyncapi.yaml"}


def nothing_is_orphaned(schemas: Path) -> Iterator[str]:
    """Every topic file has schemas and examples, and nothing lies about that belongs to none."""
    topics = {path.stem for path in (schemas / "topics").glob("*.yaml")}
    for topic in sorted(topics):
        if not list((schemas / "avro" / topic).glob("*.avsc")):
            yield f"{topic}: no schema in avro/{topic}"
        if not list((schemas / "examples" / topic).glob("*.json")):
            yield f"{topic}: no example in examples/{topic}"
    yield from _strangers(schemas, topics)


def _strangers(schemas: Path, topics: set[str]) -> Iterator[str]:
    expected = {f"topics/{topic}.yaml" for topic in topics} | _TOP_LEVEL
    patterns = [r"avro/(?P<topic>[^/]+)/\d{3}\.avsc", r"examples/(?P<topic>[^/]+)/[a-z0-9-]+\.json"]
    for path in sorted(path for path in schemas.rglob("*") if path.is_file()):
        name = path.relative_to(schemas).as_posix()
        match = next((m for p in patterns if (m := re.fullmatch(p, name))), None)
        if match is None and name not in expected:
            yield f"{name}: not a file of this folder"
        elif match is not None and match["topic"] not in topics:
            yield f"{name}: no topic file topics/{match['topic']}.yaml"


def topic_files_are_valid(schemas: Path, services: frozenset[str]) -> Iterator[str]:
    """Names, numbers and services of every topic file; one event has one topic."""
    events: dict[str, str] = {}
    for path in sorted((schemas / "topics").glob("*.yaml")):
        raw = yaml.safe_load(path.read_text())
        found = list(_shape(raw)) if isinstance(raw, dict) else ["is not a mapping"]
        found = found or [*_names(raw, path.stem), *_numbers(raw), *_services(raw, services)]
        if not found and (other := events.setdefault(raw["event"], raw["name"])) != raw["name"]:
            found = [f"event {raw['event']} is that of {other} already"]
        yield from (f"topics/{path.name}: {problem}" for problem in found)


def _shape(raw: dict[str, Any]) -> Iterator[str]:
    for key in sorted(_REQUIRED.keys() - raw.keys()):
        yield f"{key} is missing"
    for key, value in raw.items():
        kind = (_REQUIRED | _OPTIONAL).get(key)
        if kind is None:
            yield f"{key} is not a field of a topic file"
        elif type(value) is not kind:
            yield f"{key} must be {kind.__name__}"
        elif not isinstance(value, list):
            continue
        elif not all(isinstance(item, str) for item in value):
            yield f"{key} must hold strings"
        elif len(set(value)) != len(value):
            yield f"{key} names something twice"


def _names(raw: dict[str, Any], stem: str) -> Iterator[str]:
    if raw["name"] != stem:
        yield f"name is {raw['name']}, the file's is {stem}"
    if not _TOPIC.fullmatch(raw["name"]):
        yield f"{raw['name']} is not of the form domain.fact.v1 (lower case, no _)"
    if not _EVENT.fullmatch(raw["event"]):
        yield f"event {raw['event']} is not PascalCase"
    if raw["compatibility"] != "FULL_TRANSITIVE":
        yield f"compatibility is {raw['compatibility']}, must be FULL_TRANSITIVE"
    if not raw["description"].strip():
        yield "description is empty"
    for lane in raw.get("lanes", ()):
        if not _LANE.fullmatch(lane):
            yield f"lane {lane!r} is not a lower-case word"


def _numbers(raw: dict[str, Any]) -> Iterator[str]:
    for key in ("partitions", "retention_hours"):
        if raw[key] < 1:
            yield f"{key} must be at least 1"


def _services(raw: dict[str, Any], services: frozenset[str]) -> Iterator[str]:
    if not raw["producers"]:
        yield "producers is empty"
    for name in raw["producers"]:
        if name not in services:
            yield f"producer {name} is no service"
    for group in raw["consumers"]:
        # `parser.backfill` is the service's group for a second purpose.
        if group != BROADCAST and group.partition(".")[0] not in services:
            yield f"consumer group {group} is no service's"
