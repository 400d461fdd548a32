"""Every topic there is to create: bases, lanes, retries, dead letters and the broker's epoch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from libs.contracts.topics import Topic, load_topics

EPOCH_TOPIC = "sluice.epoch.v1"
BROADCAST = "*"  # a reader without a group: every replica reads every partition
DEAD_LETTER_RETENTION_HOURS = 30 * 24
KEEP_FOR_EVER_MS = -1


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as the broker must have it."""

    name: str
    partitions: int
    retention_ms: int  # -1 keeps everything


def retry_topic(topic: str, group: str) -> str:
    """Where a group's failed messages of a topic (any lane) come back after their delay."""
    return f"{topic}.{_label(group)}.retry"


def dead_letter_topic(topic: str, group: str) -> str:
    """Where a group's given-up messages of a topic (any lane) are kept for people."""
    return f"{topic}.{_label(group)}.dlq"


def _label(group: str) -> str:
    # Kafka's metric names fold `.` and `_` into one, so a topic name may use only one of them.
    return group.replace("_", "-")


def groups_of(topic: Topic) -> tuple[str, ...]:
    """The consumer groups of a topic; broadcast readers have none."""
    return tuple(group for group in topic.consumers if group != BROADCAST)


def topic_specs(topics: Iterable[Topic] | None = None) -> list[TopicSpec]:
    """Every topic to create, by default from the topic files.

    A lane has the partitions of its base. So has a retry topic, of which there is one for a topic
    and group: urgent and normal work share it. A dead-letter topic has one partition.
    """
    specs = [TopicSpec(EPOCH_TOPIC, 1, KEEP_FOR_EVER_MS)]
    for topic in load_topics().values() if topics is None else topics:
        specs.extend(_specs_of(topic))
    return specs


def _specs_of(topic: Topic) -> Iterator[TopicSpec]:
    for lane in ("", *topic.lanes):
        yield TopicSpec(topic.lane(lane), topic.partitions, _ms(topic.retention_hours))
    for group in groups_of(topic):
        retry, dead = retry_topic(topic.name, group), dead_letter_topic(topic.name, group)
        yield TopicSpec(retry, topic.partitions, _ms(topic.retention_hours))
        yield TopicSpec(dead, 1, _ms(DEAD_LETTER_RETENTION_HOURS))


def _ms(hours: int) -> int:
    return hours * 3_600_000
