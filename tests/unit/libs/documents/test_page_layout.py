"""A page's layout marks headings and tables in its text, and never loses or doubles any of it."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from libs.documents.builder import BlockBuilder
from libs.documents.model import BlockKind
from libs.documents.page_layout import (
    PageLayout,
    Ruling,
    SizedLine,
    grids,
    heading_levels,
    lay_over,
)

BODY = [SizedLine(f"A line of the body, number {n}.", 10.0, 40) for n in range(20)]


def page(*paragraphs: str) -> BlockBuilder:
    builder = BlockBuilder()
    builder.page_break()
    for text in paragraphs:
        builder.add(BlockKind.PARAGRAPH, text)
    return builder


def laid(source: BlockBuilder, layout: PageLayout) -> tuple[list[tuple[str, str]], int]:
    builder, missed = lay_over(source.text, source.blocks, source.page_count, {1: layout}, 10_000)
    return [
        (f"h{b.level}" if b.level else b.kind.value, builder.text[b.start : b.end])
        for b in builder.blocks
    ], missed


def sized(text: str, height: float) -> SizedLine:
    return SizedLine(text, height, len(text))


def horizontal(y: float, start: float = 0, end: float = 200) -> Ruling:
    return Ruling(y, start, end, horizontal=True)


def vertical(x: float, start: float = 0, end: float = 40) -> Ruling:
    return Ruling(x, start, end, horizontal=False)


def test_larger_letters_make_levels_and_near_heights_one() -> None:
    lines = [*BODY, sized("Title", 20.0), sized("Part", 14.0), sized("Part 2", 14.2)]
    assert heading_levels([PageLayout(lines, [])]) == {20.0: 1, 14.2: 2, 14.0: 2}


def test_a_height_that_long_lines_have_too_is_no_headings() -> None:
    long = SizedLine("x" * 100, 14.0, 300)
    assert heading_levels([PageLayout([*BODY, sized("Lead", 14.0), long], [])]) == {}


def test_a_heading_is_cut_out_of_its_paragraph_and_its_lines_are_joined() -> None:
    layout = PageLayout([*BODY, sized("A title", 20.0), sized("of two lines", 20.0)], [])
    assert laid(page("A title\nof two lines\nThe body."), layout) == (
        [("h1", "A title of two lines"), ("paragraph", "The body.")],
        0,
    )


def test_a_table_takes_the_place_of_its_lines_whatever_their_order() -> None:
    rows = [["City", "Limit for\none night"], ["Beijing", "800"]]
    source = page("Before.", "City Limit for\nBeijing 800\none night", "After.")
    assert laid(source, PageLayout(BODY, [rows])) == (
        [
            ("paragraph", "Before."),
            ("table", "City | Limit for one night\nBeijing | 800"),
            ("paragraph", "After."),
        ],
        0,
    )


def test_a_table_that_is_one_already_is_not_cut_at_a_line_like_a_heading() -> None:
    source = page("Total")
    source.add(BlockKind.TABLE, "City | Limit\nTotal\nBeijing | 800")
    assert laid(source, PageLayout([*BODY, sized("Total", 20.0)], [])) == (
        [("h1", "Total"), ("table", "City | Limit\nTotal\nBeijing | 800")],
        0,
    )


def test_a_table_whose_text_stands_apart_stays_as_lines_and_is_counted() -> None:
    rows = [["City", "Limit"], ["Beijing", "800"]]
    source = page("City Limit", "A footnote between.", "Beijing 800")
    shape, missed = laid(source, PageLayout(BODY, [rows]))
    assert [kind for kind, _ in shape] == ["paragraph"] * 3
    assert missed == 1


def test_a_grid_has_the_cells_between_its_lines_and_open_ones_are_one() -> None:
    lines = [horizontal(y) for y in (0, 20, 40)] + [vertical(0), vertical(200)]
    assert list(grids([*lines, vertical(100)])) == [
        [[(0, 20, 100, 40), (100, 20, 200, 40)], [(0, 0, 100, 20), (100, 0, 200, 20)]]
    ]
    only_above = Ruling(100, 20, 40, horizontal=False)
    assert list(grids([*lines, only_above])) == [
        [[(0, 20, 100, 40), (100, 20, 200, 40)], [(0, 0, 200, 20)]]
    ]


def test_lines_that_do_not_meet_are_no_table() -> None:
    assert list(grids([horizontal(y) for y in (0, 20, 40)])) == []
    assert list(grids([horizontal(0), horizontal(20), vertical(300), vertical(400)])) == []


WORDS = st.text(alphabet="ab 12\n", min_size=1, max_size=12)


@given(
    paragraphs=st.lists(WORDS, max_size=6),
    tables=st.lists(st.lists(st.lists(WORDS, min_size=2, max_size=3), min_size=2), max_size=3),
    headings=st.lists(WORDS, max_size=3),
)
def test_no_character_is_lost_or_doubled_whatever_the_layout_says(
    paragraphs: list[str], tables: list[list[list[str]]], headings: list[str]
) -> None:
    source = page(*paragraphs, *(" ".join(map(" ".join, rows)) for rows in tables))
    layout = PageLayout([*BODY, *(sized(text.strip(), 20.0) for text in headings)], tables)
    builder, _ = lay_over(source.text, source.blocks, 1, {1: layout}, 10_000)
    before = Counter("".join(source.text.split()))
    assert Counter("".join(builder.text.replace("|", "").split())) == before
