"""Which topics a consumer group reads, and which of them share a lane."""

from collections.abc import Iterable
from dataclasses import dataclass

from libs.contracts.topics import Topic
from libs.contracts.topology import retry_topic

RETRY_LANE = "retry"


@dataclass(frozen=True, slots=True)
class Reading:
    """The topics of one consumer, as the engine and the ledger need them."""

    lanes: dict[str, str]  # topic read -> lane; each lane has an in-flight bound of its own
    base_topics: dict[str, str]  # topic read -> the topic it is a lane or retry of


def reading(topics: Iterable[Topic], group_id: str, lanes: Iterable[str]) -> Reading:
    """What a group with these lanes reads; '' is normal work, and with it come the retries.

    One group member reads all its lanes, so they share the poll loop; urgent work does not wait
    behind bulk because the bounds on buffered and running work hold for each partition and lane.

    Raises: ValueError: no topic declares one of the lanes.
    """
    topics, lanes = list(topics), list(lanes)
    lane_of: dict[str, str] = {}
    base_of: dict[str, str] = {}
    for lane in lanes:
        declaring = [topic for topic in topics if not lane or lane in topic.lanes]
        if not declaring:
            raise ValueError(f"none of {[topic.name for topic in topics]} has a lane {lane!r}")
        for topic in declaring:
            lane_of[topic.lane(lane)] = lane
            base_of[topic.lane(lane)] = topic.name
    if "" in lanes:
        for topic in topics:
            again = retry_topic(topic.name, group_id)
            lane_of[again] = RETRY_LANE
            base_of[again] = topic.name
    return Reading(lane_of, base_of)
