"""Which parts of blocks stand beside which chunk."""

from hypothesis import given
from hypothesis import strategies as st

from services.cli.inspection.alignment import Row, aligned
from tests.unit.services.cli.inspection.examples import block, chunk


def _said(rows: list[Row], text: str) -> list[tuple[list[str], str | None]]:
    return [
        ([text[p.start : p.end] for p in row.pieces], row.chunk["text"] if row.chunk else None)
        for row in rows
    ]


def test_blocks_of_one_chunk_share_its_row() -> None:
    text = "one\ntwo\nthree"
    blocks = [block("heading", 0, 3), block("paragraph", 4, 7), block("paragraph", 8, 13)]
    rows = aligned(blocks, [chunk(0, "one\ntwo", 0), chunk(1, "three", 8)], text)
    assert _said(rows, text) == [(["one", "two"], "one\ntwo"), (["three"], "three")]


def test_a_block_that_was_cut_goes_on_in_the_next_row() -> None:
    text = "abc def"
    rows = aligned([block("paragraph", 0, 7)], [chunk(0, "abc", 0), chunk(1, "def", 4)], text)
    assert _said(rows, text) == [(["abc"], "abc"), (["def"], "def")]
    assert [piece.is_continued for row in rows for piece in row.pieces] == [False, True]


def test_what_lies_in_no_chunk_has_a_row_of_its_own() -> None:
    text = "abc LOST def LAST"
    chunks = [chunk(0, "abc", 0), chunk(1, "def", 9)]
    rows = aligned([block("paragraph", 0, 17)], chunks, text)
    assert _said(rows, text) == [
        (["abc"], "abc"),
        ([" LOST "], None),
        (["def"], "def"),
        ([" LAST"], None),
    ]


def test_page_breaks_stay_where_they_are() -> None:
    text = "ab\ncd"
    blocks = [block("paragraph", 0, 2), block("page_break", 2, 2), block("paragraph", 3, 5)]
    rows = aligned(blocks, [chunk(0, "ab\ncd", 0)], text)
    assert [piece.block["kind"] for piece in rows[0].pieces] == [
        "paragraph",
        "page_break",
        "paragraph",
    ]
    after_the_last = aligned([*blocks, block("page_break", 5, 5)], [chunk(0, text, 0)], text)
    assert after_the_last[-1].pieces[0].block["kind"] == "page_break"


def test_without_chunks_every_block_is_shown() -> None:
    blocks = [block("paragraph", 0, 3), block("paragraph", 4, 7)]
    assert _said(aligned(blocks, [], "one two"), "one two") == [(["one", "two"], None)]


_LENGTHS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), max_size=8)


@given(_LENGTHS, _LENGTHS)
def test_every_character_of_a_block_stands_in_one_row(
    blocks: list[tuple[int, int]], chunks: list[tuple[int, int]]
) -> None:
    text = "x" * 100
    made = [block("paragraph", start, end) for start, end in _placed(blocks)]
    cut = [chunk(n, text[s:e], s) for n, (s, e) in enumerate(_placed(chunks)) if e > s]
    rows = aligned(made, cut, text)
    seen = [at for row in rows for piece in row.pieces for at in range(piece.start, piece.end)]
    assert seen == [at for one in made for at in range(one["start"], one["end"])]
    assert [row.chunk for row in rows if row.chunk] == cut
    empty = [one for one in made if one["start"] == one["end"]]
    shown = [p.block for row in rows for p in row.pieces if p.start == p.end]
    assert shown == empty


def _placed(lengths: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(gap, length) pairs as (start, end) ones."""
    placed, at = [], 0
    for gap, length in lengths:
        placed.append((at + gap, at + gap + length))
        at += gap + length
    return placed
