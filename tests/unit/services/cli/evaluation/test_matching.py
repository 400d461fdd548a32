"""Which references a passage finds."""

from pathlib import Path

import pytest

from services.cli.evaluation.matching import Matcher
from services.cli.evaluation.sets import Reference

TEXT = "# 报销\n\nThe limit is **20,000** yuan.\r\nThe limit is 30,000 yuan.\n\n金额上限为两万元。"


@pytest.fixture
def matcher(tmp_path: Path) -> Matcher:
    file = tmp_path / "a.md"
    file.write_bytes(TEXT.encode())
    return Matcher({"a.md": file, "b.pdf": tmp_path / "b.pdf"})


def at(part: str) -> Reference:
    return Reference("a.md", part, TEXT.index(part))


def test_markup_and_white_space_do_not_matter(matcher: Matcher) -> None:
    assert matcher.finds("a.md", "The limit is 20,000 yuan.", None, at("**20,000** yuan"))
    assert matcher.finds("a.md", "金额 上限 为 两万元", None, at("金额上限为两万元。"))


def test_equal_words_elsewhere_do_not_count(matcher: Matcher) -> None:
    second = Reference("a.md", "The limit is", TEXT.rindex("The limit is"))
    assert not matcher.finds("a.md", "The limit is 20,000 yuan.", None, second)
    assert matcher.finds("a.md", "The limit is 30,000 yuan.", None, second)


def test_half_of_either_must_lie_in_the_other(matcher: Matcher) -> None:
    whole = at("The limit is 30,000 yuan.")
    assert not matcher.finds("a.md", "limit is 20,000 yuan. The limit", None, whole)
    assert matcher.finds("a.md", "yuan. The limit is 30,", None, whole)


def test_another_document_never_counts(matcher: Matcher) -> None:
    assert not matcher.finds("b.pdf", "The limit is 20,000 yuan.", None, at("**20,000** yuan"))


def test_where_there_are_pages_the_page_counts(matcher: Matcher) -> None:
    reference = Reference("b.pdf", "anything", page=20)
    assert matcher.finds("b.pdf", "whatever the table says", 20, reference)
    assert not matcher.finds("b.pdf", "anything", 19, reference)


def test_a_text_that_the_file_does_not_hold_finds_nothing(matcher: Matcher) -> None:
    assert not matcher.finds("a.md", "The limit is 99 yuan.", None, at("**20,000** yuan"))
    assert not matcher.finds("a.md", "…", None, at("**20,000** yuan"))
