"""Near-copies stand below what says something else."""

from libs.retrieval.copies import below_others
from libs.retrieval.types import Hit, Scores

RULE = "Employees hand in receipts within thirty days after the end of a business trip."
OTHER = "The canteen is open from eleven to two on every working day of the week."


def hits(*texts: str) -> list[Hit]:
    return [
        Hit(f"c{i}", f"d{i}", "x", text, 0, len(text), None, (), Scores(1 - i / 100))
        for i, text in enumerate(texts)
    ]


def test_copies_go_below_others_and_say_what_they_copy() -> None:
    ranked = below_others(hits(RULE, RULE.replace(" ", "\n"), RULE + " Thanks!", OTHER), 10, 0.85)
    assert [hit.chunk_id for hit in ranked] == ["c0", "c3", "c1", "c2"]
    assert [hit.duplicate_of for hit in ranked] == [None, None, "c0", "c0"]


def test_texts_that_differ_in_a_number_are_no_copies() -> None:
    texts = [f"子公司单笔报销金额超过{n}元的，须经母公司财务总监审批。" for n in (20000, 50000)]
    ranked = below_others(hits(*texts), 10, 0.5)
    assert [hit.duplicate_of for hit in ranked] == [None, None]


def test_what_follows_the_wanted_ones_stays_as_it_is() -> None:
    ranked = below_others(hits(RULE, RULE, OTHER, OTHER, RULE), 2, 0.9)
    assert [hit.chunk_id for hit in ranked] == ["c0", "c2", "c3", "c4", "c1"]


def test_above_one_nothing_is_a_copy() -> None:
    assert below_others(hits(RULE, RULE), 2, 1.1) == hits(RULE, RULE)


def test_short_and_empty_texts_are_compared_whole() -> None:
    ranked = below_others(hits("甲", "乙", "甲", "", "…"), 9, 0.9)
    assert [hit.duplicate_of for hit in ranked] == [None, None, None, "c0", "c3"]
