"""The AsyncAPI document is one: its shape, its references, and every topic in it."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from faststream.specification.asyncapi.v3_0_0.schema import ApplicationSchema

from libs.contracts import dead_letter_topic, groups_of, load_topics, retry_topic, topic_specs
from libs.contracts.topics import SCHEMAS_DIR


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((SCHEMAS_DIR / "asyncapi.yaml").read_text())
    return found


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from references(child)


def resolve(document: dict[str, Any], reference: str) -> Any:
    node: Any = document
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    return node


def test_it_has_the_shape_that_another_implementation_of_asyncapi_3_expects(
    document: dict[str, Any],
) -> None:
    read = ApplicationSchema.model_validate(document)
    assert read.asyncapi == "3.0.0"
    assert set(read.channels) == set(document["channels"])


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    found = set(references(document))
    assert len(found) > len(load_topics())
    for reference in found:
        assert resolve(document, reference)


def test_every_topic_to_create_is_a_channel_with_its_partitions(document: dict[str, Any]) -> None:
    channels = {
        channel["address"]: channel["bindings"]["kafka"]["partitions"]
        for channel in document["channels"].values()
    }
    assert channels == {spec.name: spec.partitions for spec in topic_specs()}


def test_a_group_receives_every_lane_and_its_retries_and_sends_its_dead_letters(
    document: dict[str, Any],
) -> None:
    operations = document["operations"]
    for topic in load_topics().values():
        for group in groups_of(topic):
            for lane in ("", *topic.lanes):
                assert f"{group}.receive.{topic.lane(lane)}" in operations
            retry, dead = retry_topic(topic.name, group), dead_letter_topic(topic.name, group)
            assert f"{group}.receive.{retry}" in operations
            assert f"{group}.send.{dead}" in operations
