"""Which topics a group reads."""

import pytest

from libs.contracts import topic_of
from libs.eventbus.reading import reading

TOPICS = [topic_of("DocumentChunked"), topic_of("DocumentDeleted")]


def test_base_lanes_and_retries_with_what_they_belong_to() -> None:
    read = reading(TOPICS, "indexer", ["", "urgent"])
    assert read.lanes == {
        "documents.chunked.v1": "",
        "documents.chunked.v1.urgent": "urgent",
        "documents.deleted.v1": "",
        "documents.chunked.v1.indexer.retry": "retry",
        "documents.deleted.v1.indexer.retry": "retry",
    }
    assert read.base_topics["documents.chunked.v1.urgent"] == "documents.chunked.v1"
    assert read.base_topics["documents.deleted.v1.indexer.retry"] == "documents.deleted.v1"


def test_a_lane_alone_leaves_normal_work_and_retries_to_others() -> None:
    assert list(reading(TOPICS, "indexer", ["urgent"]).lanes) == ["documents.chunked.v1.urgent"]


def test_a_lane_that_no_topic_has_is_refused() -> None:
    with pytest.raises(ValueError, match="hurry"):
        reading(TOPICS, "indexer", ["hurry"])
