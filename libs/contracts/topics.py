"""Topic files as typed values. `schemas/topics/*.yaml` is the source; nothing else names topics."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

SCHEMAS_DIR = Path(__file__).parents[2] / "schemas"


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic file."""

    name: str
    event: str  # class name in `libs.contracts.events`
    key: str  # the field whose order matters
    description: str
    partitions: int
    retention_hours: int
    producers: tuple[str, ...]
    consumers: tuple[str, ...]  # consumer groups; `*` marks broadcast readers
    lanes: tuple[str, ...] = ()  # extra topics `<name>.<lane>` under the one schema

    def lane(self, lane: str = "") -> str:
        """The topic name of a lane; '' is the topic itself. Raises: ValueError."""
        if not lane:
            return self.name
        if lane not in self.lanes:
            raise ValueError(f"{self.name} has no lane {lane!r}, only {self.lanes}")
        return f"{self.name}.{lane}"


def _topic(raw: dict[str, Any]) -> Topic:
    return Topic(
        name=raw["name"],
        event=raw["event"],
        key=raw["key"],
        description=raw["description"],
        partitions=raw["partitions"],
        retention_hours=raw["retention_hours"],
        producers=tuple(raw["producers"]),
        consumers=tuple(raw["consumers"]),
        lanes=tuple(raw.get("lanes", ())),
    )


def load_topics(directory: Path = SCHEMAS_DIR / "topics") -> dict[str, Topic]:
    """Every topic by name."""
    topics = (_topic(yaml.safe_load(path.read_text())) for path in sorted(directory.glob("*.yaml")))
    return {topic.name: topic for topic in topics}


@cache
def topic_of(event_name: str) -> Topic:
    """The topic of an event class's name. Raises: KeyError."""
    return {topic.event: topic for topic in load_topics().values()}[event_name]
