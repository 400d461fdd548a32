import pytest

from libs.contracts import TopicSpec
from libs.eventbus.admin import topic_configs

SPEC = TopicSpec("a.b.v1", 2, 1000)


@pytest.mark.parametrize(("copies", "in_sync"), [(1, None), (2, "1"), (3, "2")])
def test_what_is_acknowledged_outlives_a_copy_where_there_are_three(
    copies: int, in_sync: str | None
) -> None:
    configs = topic_configs(SPEC, copies)
    assert configs["retention.ms"] == "1000"
    assert configs.get("min.insync.replicas") == in_sync
