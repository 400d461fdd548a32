"""The citation filter: a closed set, however the markers are written or cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.executor.domain.citations import CitationFilter, claims_of


def filtered(pieces: list[str], allowed: set[int]) -> tuple[str, CitationFilter]:
    citations = CitationFilter(allowed)
    text = "".join(citations.feed(piece) for piece in pieces) + citations.finish()
    return text, citations


@pytest.mark.parametrize(
    ("written", "shown", "used", "unknown"),
    [
        ("The limit is 5 [1].", "The limit is 5 [1].", [1], 0),
        ("A [1][2].", "A [1][2].", [1, 2], 0),
        ("A [1, 2].", "A [1][2].", [1, 2], 0),
        ("A [1-3].", "A [1][2].", [1, 2], 1),
        ("A [7].", "A.", [], 1),
        ("A [1, 7].", "A [1].", [1], 1),
        ("限额为5元【1】。", "限额为5元[1]。", [1], 0),
        ("限额为5元[来源1]，", "限额为5元[1]，", [1], 0),
        ("A [source 2].", "A [2].", [2], 0),
        ("A [^1].", "A [1].", [1], 0),
        ("A [note] b [x", "A [note] b [x", [], 0),
        ("see [1](http://x)", "see [1](http://x)", [1], 0),
        ("open [1", "open [1", [], 0),
        ("end [12345678901234567890].", "end.", [], 1),
    ],
)
def test_markers_are_normalised_and_unknown_ones_removed(
    written: str, shown: str, used: list[int], unknown: int
) -> None:
    for pieces in ([written], list(written)):
        text, citations = filtered(pieces, {1, 2})
        assert (text, citations.used, citations.unknown_count) == (shown, used, unknown)


def test_text_without_markers_is_not_held_back() -> None:
    citations = CitationFilter({1})
    assert citations.feed("Hello, world.") == "Hello, world."


@given(
    st.lists(st.sampled_from(["[1]", "[2, 9]", " [3]", "word ", "[", "]", "。", "[note]", " "])),
    st.integers(1, 5),
)
def test_cutting_the_stream_anywhere_changes_nothing(tokens: list[str], size: int) -> None:
    whole = "".join(tokens)
    pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
    assert filtered(pieces, {1, 2})[0] == filtered([whole], {1, 2})[0]


def test_claims_are_the_sentences_that_cite_a_number() -> None:
    answer = "The limit is 5 yuan [1]. Approval takes two days [2]. Both apply [1]."
    assert claims_of(answer, 2) == "Approval takes two days ."
    assert "limit" in claims_of(answer, 1)
    assert "Approval" not in claims_of(answer, 1)
    assert claims_of("限额为5元[1]。审批需两天[2]。", 2) == "审批需两天。"
    assert claims_of(answer, 3) == ""
