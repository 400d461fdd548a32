"""Headings in wiki markup bound sections, whatever reader the text came through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.documents.markdown import heading_title, read_markdown
from libs.documents.model import Block, BlockKind
from libs.documents.plain import read_plain
from libs.documents.wiki_headings import with_wiki_headings

WIKI = "== Gameplay ==\nPlayers move units.\n=== Classes ===\nThere are five.\n== Plot ==\nA war."
TOKENISED = " = Title = \n Words . \n = = Plot = = \n A war . \n"
ASCIIDOC = "== Install\n\nRun it.\n\n=== On Linux\n\nUse a package."


def headings(text: str, read: object = read_plain) -> list[tuple[int | None, str]]:
    source, blocks = read(text)  # type: ignore[operator]
    return [
        (block.level, heading_title(source[block.start : block.end]))
        for block in blocks
        if block.kind is BlockKind.HEADING
    ]


@pytest.mark.parametrize("read", [read_plain, read_markdown])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WIKI, [(2, "Gameplay"), (3, "Classes"), (2, "Plot")]),
        (TOKENISED, [(1, "Title"), (2, "Plot")]),
        (ASCIIDOC, [(2, "Install"), (3, "On Linux")]),
        ("a = b\n= c\n== d == e\nx == y == z", []),
        ("== Only one ==\ntext", []),
        ("Title\n=====\n\n== ==\n\n======\n\n== a ===\n\n= b", [(1, "Title")]),
    ],
)
def test_lines_between_equal_marks_are_headings(
    text: str, expected: list[tuple[int, str]], read: object
) -> None:
    if read is read_plain:
        expected = [each for each in expected if "=====" not in text]
    assert headings(text, read) == expected


def test_what_lies_between_stays_paragraphs() -> None:
    text, blocks = read_plain(WIKI)
    assert [text[b.start : b.end] for b in blocks if b.kind is BlockKind.PARAGRAPH] == [
        "Players move units.",
        "There are five.",
        "A war.",
    ]


@given(st.text(alphabet="= ab\n\t", max_size=200))
def test_every_visible_character_is_in_one_block_in_order(source: str) -> None:
    text, blocks = read_plain(source)
    position = 0
    for block in blocks:
        assert text[position : block.start].strip() == ""
        assert block.start < block.end
        position = block.end
    assert text[position:].strip() == ""


def test_blocks_of_one_line_stay_apart() -> None:
    text = "== A = b\n== C = d"
    spans = [(0, 4), (5, 8), (9, 13), (14, 17)]
    blocks = [Block(BlockKind.PARAGRAPH, *span) for span in spans]
    assert [(each.start, each.end) for each in with_wiki_headings(text, blocks)] == spans
