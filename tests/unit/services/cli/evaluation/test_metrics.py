"""Ranking metrics against values worked out by hand."""

from math import log2

import pytest

from services.cli.evaluation.metrics import estimate, ndcg_at, recall_at, reciprocal_rank

# Ranks 1 to 4: nothing, reference 0, reference 0 again, references 1 and 2.
FOUND = [frozenset[int](), frozenset({0}), frozenset({0}), frozenset({1, 2})]


def test_recall_counts_each_reference_once_and_only_within_k() -> None:
    assert recall_at(FOUND, 4, 3, any_one=False) == 1 / 4
    assert recall_at(FOUND, 4, 4, any_one=False) == 3 / 4
    assert recall_at(FOUND, 4, 1, any_one=False) == 0.0
    assert recall_at([], 4, 10, any_one=False) == 0.0


def test_one_of_several_right_answers_is_enough() -> None:
    assert recall_at(FOUND, 4, 2, any_one=True) == 1.0
    assert ndcg_at([frozenset({3})], 4, 10, any_one=True) == 1.0


def test_reciprocal_rank_is_that_of_the_first_hit_that_finds_something() -> None:
    assert reciprocal_rank(FOUND, 10) == 1 / 2
    assert reciprocal_rank(FOUND, 1) == 0.0


def test_ndcg_gains_nothing_from_the_same_reference_twice() -> None:
    best = 1 + 1 / log2(3) + 1 / log2(4)
    gained = 1 / log2(3) + 1 / log2(5)
    assert ndcg_at(FOUND, 3, 10, any_one=False) == pytest.approx(gained / best)


def test_an_interval_holds_its_mean_narrows_with_more_values_and_repeats() -> None:
    few, many = estimate([0.0, 1.0] * 10), estimate([0.0, 1.0] * 1_000)
    assert few.mean == many.mean == 0.5
    assert few.low < many.low < 0.5 < many.high < few.high
    assert many.high - many.low == pytest.approx(2 * 1.96 * 0.5 / 2_000**0.5, rel=0.1)
    assert estimate([0.0, 1.0] * 10) == few
    with pytest.raises(ValueError, match="no values"):
        estimate([])
