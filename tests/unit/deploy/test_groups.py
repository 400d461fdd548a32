"""The chart scales each consumer group by every topic it reads, and knows every service."""

from libs.contracts import TopicSpec, topic_specs
from libs.contracts.topics import load_topics
from libs.contracts.topology import groups_of, retry_topic
from tests.deploy.repository import CHART, read_yaml, service_modules

COMPONENTS = read_yaml(CHART / "files" / "components.yaml")


def groups() -> dict[str, set[str]]:
    """Each group's topics: with their lanes, and what comes back after a retry."""
    found: dict[str, set[str]] = {}
    for topic in load_topics().values():
        for group in groups_of(topic):
            lanes = {topic.lane(lane) for lane in ("", *topic.lanes)}
            found.setdefault(group, set()).update(lanes, {retry_topic(topic.name, group)})
    return found


def test_every_group_has_all_its_topics() -> None:
    scaled = {c["group"]: set(c["topics"]) for c in COMPONENTS.values() if "group" in c}
    assert scaled == groups()


def test_a_group_has_no_more_replicas_than_its_widest_topic_has_partitions() -> None:
    specs: dict[str, TopicSpec] = {spec.name: spec for spec in topic_specs()}
    for component in COMPONENTS.values():
        if "group" in component:
            widest = max(specs[topic].partitions for topic in component["topics"])
            assert component["partitions"] == widest


def test_every_service_is_deployed() -> None:
    deployed = {name.replace("-", "_") for name in COMPONENTS}
    processes = {module.rsplit(".")[-1].replace("api", "ingest") for module in service_modules()}
    assert deployed == processes
    assert set(read_yaml(CHART / "values.yaml")["services"]) == set(COMPONENTS)
