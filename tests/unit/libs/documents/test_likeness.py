"""Texts that say the same are known to, whatever their files look like."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.documents.likeness import NEAR, SHINGLE, Likeness, likeness_of, similarity

WORDS = [f"word{number}" for number in range(500)]
CHINESE = "子公司单笔报销金额超过两万元的，须经母公司财务总监审批。差旅费用的报销上限是每天五百元。"


def text_of(seed: int, words: int = 600) -> list[str]:
    return random.Random(seed).choices(WORDS, k=words)  # noqa: S311


def like(*parts: str) -> Likeness:
    found = likeness_of(parts)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "other",
    [
        "The  team\nlead approves. It costs 20,000 €.",
        "the team lead approves; it costs 20 000",
        "- The team lead approves\r\n- It costs 20,000",
        "Ｔｈｅ team lead approves. It costs ２０，０００",
    ],
)
def test_layout_case_and_punctuation_make_no_other_text(other: str) -> None:
    assert like("The team lead approves. It costs 20,000.") == like(other)


def test_parts_are_one_text() -> None:
    assert like(CHINESE) == like(CHINESE[:11], CHINESE[11:]) == like(*CHINESE)
    long = " ".join(text_of(1, 300_000))
    assert like(long) == like(*long.split())


def test_a_changed_figure_is_another_text_and_a_near_one() -> None:
    words = text_of(1)
    changed = [*words[:300], "20000", *words[300:]]
    one, other = like(" ".join(words)), like(" ".join(changed))
    assert one.text_sha256 != other.text_sha256
    assert similarity(one.sketch, other.sketch) > 0.9
    assert set(one.keys) & set(other.keys)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8, 0.9, 0.95])
def test_the_estimate_is_near_the_true_share(share: float) -> None:
    words, strangers = text_of(1, 5_000), text_of(2, 5_000)
    kept = int(5_000 * share)
    texts = ["".join(words), "".join([*words[:kept], *strangers[kept:]])]
    sets = [{text[at : at + SHINGLE] for at in range(len(text) - SHINGLE + 1)} for text in texts]
    true = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
    one, other = (like(text) for text in texts)
    assert similarity(one.sketch, other.sketch) == pytest.approx(true, abs=0.1)  # 4 errors
    if true >= NEAR:
        assert set(one.keys) & set(other.keys)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_like_itself_and_the_measure_is_even(one: str, other: str) -> None:
    a, b = likeness_of([one]), likeness_of([other])
    if a is None or b is None:
        return
    assert similarity(a.sketch, a.sketch) == 1.0
    assert similarity(a.sketch, b.sketch) == similarity(b.sketch, a.sketch)
    assert 0.0 <= similarity(a.sketch, b.sketch) <= 1.0
    assert a.keys


@pytest.mark.parametrize("text", ["", " \n", "...", "\x00"])
def test_what_has_no_letter_is_like_nothing(text: str) -> None:
    assert likeness_of([text]) is None
    assert likeness_of([]) is None


def test_broken_surrogates_are_no_obstacle() -> None:
    assert like("a text with \udcff in it").keys
