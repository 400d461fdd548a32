"""Sentences keep their exact place, whatever the text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.documents.language import language_of
from libs.documents.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Stellar Ltd. was founded in April 2005. It paid $50.5 million, e.g. in cash! So.",
            [
                "Stellar Ltd. was founded in April 2005.",
                "It paid $50.5 million, e.g. in cash!",
                "So.",
            ],
        ),
        ("Dr. No said: “Yes.” Then left.", ["Dr. No said: “Yes.”", "Then left."]),
        (
            "国际移民组织成立于1951年。前身是“临时委员会”！它很大",
            ["国际移民组织成立于1951年。", "前身是“临时委员会”！", "它很大"],
        ),
        ("Heading\n\n- one\n- two", ["Heading", "- one", "- two"]),
        ("name | price\nA | 3\nB | 4", ["name | price", "A | 3", "B | 4"]),
        ("姓名：成某某\n性别：女", ["姓名：成某某", "性别：女"]),
        ("A line\nthat goes on.", ["A line\nthat goes on."]),
        ("  \n \n", []),
        ("", []),
    ],
)
def test_sentences_of_both_languages(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet="aB1. 。！?\n|：:，,-“”", max_size=300), st.integers(5, 60))
def test_spans_are_ordered_trimmed_bounded_and_lose_no_letter(text: str, max_chars: int) -> None:
    spans = sentence_spans(text, max_chars=max_chars)
    assert all(a_end <= b_start for (_, a_end), (b_start, _) in pairwise(spans))
    for start, end in spans:
        piece = text[start:end]
        assert piece == piece.strip() != ""
        assert len(piece) <= max_chars
    kept = "".join(text[start:end] for start, end in spans)
    assert [c for c in kept if c.isalnum()] == [c for c in text if c.isalnum()]


def test_long_text_is_cut_in_linear_time() -> None:
    assert len(sentence_spans("word, " * 100_000)) >= 1_000


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the limit?", "en"),
        ("MinIO 怎么配置？", "zh"),
        ("What does 退款 mean here?", "en"),
        ("退款", "zh"),
        ("2017?", "en"),
        ("", "en"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert language_of(text) == language
