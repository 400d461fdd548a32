"""How much evidence has to cover depends on how large the library is."""

import pytest

from libs.retrieval.gate import Rarity, judge
from libs.retrieval.policy import RetrievalPolicy

POLICY = RetrievalPolicy()
TEXT = "The accused is sentenced to 14 months of imprisonment."
QUESTION = "How long does the accused have to go to prison?"


def rarity(rows: int) -> Rarity:
    """Terms as rare as each other, of which the text holds one of four."""
    return Rarity(dict.fromkeys(("long", "accus", "go", "prison"), 3.0), rows)


@pytest.mark.parametrize(("rows", "passed"), [(29, True), (100, True), (1_000, False)])
def test_in_a_small_library_own_words_pass_that_a_large_one_may_find_by_chance(
    rows: int, passed: bool
) -> None:
    verdict = judge(QUESTION, rarity(rows), [TEXT], 0.72, POLICY)
    assert (verdict.coverage, verdict.passed) == (0.25, passed)
    assert bool(verdict.reason) != passed


def test_what_is_needed_grows_with_the_rows_within_bounds() -> None:
    needed = [POLICY.certainty_of(rows) for rows in (0, 1, 30, 100, 300, 1_000, 10**6)]
    assert needed == sorted(needed)
    assert needed[:3] == [POLICY.min_certainty] * 3
    assert needed[3] == pytest.approx(0.949, abs=0.001)
    assert needed[-1] == POLICY.max_certainty


def test_far_and_foreign_is_declined_in_any_library() -> None:
    assert not judge(QUESTION, rarity(5), ["Lorem ipsum dolor sit amet."], 0.6, POLICY).passed


def test_another_script_needs_nearness_alone() -> None:
    assert judge("要坐多久的牢？", Rarity({"坐": 3.0}, 10**6), [TEXT], 0.5, POLICY).passed
