"""The committed schemas: `schemas/avro/<topic>/<version>.avsc` and their ids."""

import json
import struct
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import fastavro

from libs.contracts.topics import SCHEMAS_DIR, load_topics

HEADER = struct.Struct(">bI")


@dataclass(frozen=True)
class SchemaVersion:
    """One committed `.avsc` file. Once committed it never changes."""

    topic: str
    version: str  # `001`, `002`, ...
    id: int  # the id on the wire
    schema: Any  # the file's JSON

    @property
    def header(self) -> bytes:
        """The framing before the body with the committed id: magic byte 0 and it, big-endian."""
        return HEADER.pack(0, self.id)

    @property
    def name(self) -> str:
        """What headers call it, whatever its id is: `<topic>/<version>`."""
        return f"{self.topic}/{self.version}"

    @cached_property
    def parsed(self) -> Any:
        """The schema as fastavro wants it, parsed once."""
        return fastavro.parse_schema(self.schema)


class SchemaStore:
    """Schemas by topic, version and id."""

    def __init__(self, directory: Path = SCHEMAS_DIR) -> None:
        self._topics = load_topics(directory / "topics")
        self._topic_names = {topic.event: topic.name for topic in self._topics.values()}
        self._by_id = {found.id: found for found in _versions(directory)}
        self._by_name = {found.name: found for found in self._by_id.values()}
        self._newest: dict[str, SchemaVersion] = {}
        for found in sorted(self._by_id.values(), key=lambda one: one.version):
            self._newest[found.topic] = found

    def topic_of(self, event_name: str) -> str:
        """The topic of an event class's name. Raises: KeyError."""
        return self._topic_names[event_name]

    def event_of(self, topic: str) -> str:
        """The event class's name of a topic. Raises: KeyError."""
        return self._topics[topic].event

    def newest(self, topic: str) -> SchemaVersion:
        """The version that is written and read. Raises: KeyError."""
        return self._newest[topic]

    def versions(self, topic: str) -> list[SchemaVersion]:
        """Every version of a topic's schema, oldest first."""
        found = (one for one in self._by_id.values() if one.topic == topic)
        return sorted(found, key=lambda one: one.version)

    def named(self, name: str) -> SchemaVersion | None:
        """The version that a header names; None: it is not committed here."""
        return self._by_name.get(name)

    def newest_of_all(self) -> list[SchemaVersion]:
        """The newest version of every topic, oldest topic first."""
        topics = dict.fromkeys(found.topic for found in self._by_id.values())
        return [self._newest[topic] for topic in topics]

    @property
    def committed_ids(self) -> dict[int, SchemaVersion]:
        """The ids that are used where no registry gives them."""
        return dict(self._by_id)


def _versions(directory: Path) -> list[SchemaVersion]:
    ids: dict[str, dict[str, Any]] = json.loads((directory / "ids.json").read_text())
    found = []
    for key, entry in ids.items():
        topic, version = key.split("/")
        schema = json.loads((directory / "avro" / topic / f"{version}.avsc").read_text())
        found.append(SchemaVersion(topic, version, entry["id"], schema))
    return found


@cache
def schema_store() -> SchemaStore:
    """The store over the repository's `schemas` folder."""
    return SchemaStore()
