"""Two rankings into one."""

import pytest

from libs.retrieval import RetrievalPolicy
from libs.retrieval.fusion import fuse, relative_to_best

POLICY = RetrievalPolicy()


def order(vector: dict[str, float], keyword: dict[str, float]) -> list[str]:
    return [chunk_id for chunk_id, _ in fuse(vector, keyword, POLICY)]


def test_both_channels_beat_one() -> None:
    assert order({"both": 0.7, "near": 0.7}, {"both": 1.0, "said": 1.0})[0] == "both"


def test_a_hit_must_pass_a_floor_in_one_channel() -> None:
    assert order({"weak": 0.44}, {"weak": 0.34}) == []
    assert order({"near": 0.46}, {"near": 0.1}) == ["near"]
    assert order({"said": 0.1}, {"said": 0.36}) == ["said"]


def test_scores_say_what_each_channel_found() -> None:
    [(_, scores)] = fuse({"near": 0.8}, {}, POLICY)
    assert (scores.vector, scores.keyword) == (0.8, None)


def test_ties_go_by_id() -> None:
    assert order({"b": 0.5, "a": 0.5}, {}) == ["a", "b"]


def test_shares_of_the_best_score() -> None:
    assert relative_to_best({"a": 8.0, "b": 2.0}) == {"a": 1.0, "b": pytest.approx(0.25)}
    assert relative_to_best({}) == {}
