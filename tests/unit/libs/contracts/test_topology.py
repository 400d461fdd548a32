from libs.contracts import dead_letter_topic, load_topics, retry_topic, topic_specs
from libs.contracts.topics import Topic
from libs.contracts.topology import TopicSpec

DAY_MS = 24 * 3_600_000


def topic(consumers: tuple[str, ...], lanes: tuple[str, ...] = ()) -> Topic:
    return Topic(
        name="documents.uploaded.v1",
        event="DocumentUploaded",
        key="document_id",
        description="",
        partitions=6,
        retention_hours=48,
        producers=("ingest",),
        consumers=consumers,
        lanes=lanes,
    )


def test_a_topic_has_lanes_and_one_retry_and_one_dead_letter_topic_for_each_group() -> None:
    specs = topic_specs([topic(("parser", "*"), ("urgent",))])
    assert specs == [
        TopicSpec("sluice.epoch.v1", 1, -1),
        TopicSpec("documents.uploaded.v1", 6, 2 * DAY_MS),
        TopicSpec("documents.uploaded.v1.urgent", 6, 2 * DAY_MS),
        TopicSpec("documents.uploaded.v1.parser.retry", 6, 2 * DAY_MS),
        TopicSpec("documents.uploaded.v1.parser.dlq", 1, 30 * DAY_MS),
    ]


def test_broadcast_readers_have_no_group_and_so_no_topics_of_their_own() -> None:
    assert [spec.name for spec in topic_specs([topic(("*",))])] == [
        "sluice.epoch.v1",
        "documents.uploaded.v1",
    ]


def test_a_group_with_an_underscore_keeps_the_topic_name_free_of_it() -> None:
    assert retry_topic("a.b.v1", "memory_compactor") == "a.b.v1.memory-compactor.retry"
    assert dead_letter_topic("a.b.v1", "memory_compactor") == "a.b.v1.memory-compactor.dlq"


def test_every_topic_of_the_platform_has_one_name_and_at_least_one_partition() -> None:
    specs = topic_specs()
    names = [spec.name for spec in specs]
    assert len(set(names)) == len(names)
    assert set(load_topics()) < set(names)
    assert all(spec.partitions >= 1 and "_" not in spec.name for spec in specs)
