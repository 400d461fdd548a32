"""Recognised lines come in reading order, in paragraphs and tables, without made-up spaces."""

from libs.documents.builder import BlockBuilder
from libs.documents.recognised import RecognisedLine, add_recognised


def line(
    text: str, left: float, top: float, width: float = 400, height: float = 20
) -> RecognisedLine:
    return RecognisedLine(text, left, top, left + width, top + height)


def read(*lines: RecognisedLine) -> list[tuple[str, str]]:
    builder = BlockBuilder()
    add_recognised(lines, builder)
    return [(b.kind.value, builder.text[b.start : b.end]) for b in builder.blocks]


def test_white_space_parts_paragraphs() -> None:
    assert read(line("one", 0, 0), line("two", 0, 25), line("three", 0, 90)) == [
        ("paragraph", "one\ntwo"),
        ("paragraph", "three"),
    ]


def test_spaces_between_chinese_characters_go_and_others_stay() -> None:
    assert read(line("年 休 假 5 days（ 全 薪 ）", 0, 0)) == [
        ("paragraph", "年休假 5 days（全薪）")
    ]


def test_lines_come_from_the_top_whatever_order_they_were_found_in() -> None:
    assert read(line("two", 0, 25), line("one", 0, 0)) == [("paragraph", "one\ntwo")]


def test_pieces_side_by_side_are_one_line() -> None:
    assert read(line("right", 450, 3), line("left", 0, 0)) == [("paragraph", "left right")]


def test_rows_with_equally_many_cells_are_a_table() -> None:
    rows = [("City", "Limit"), ("北 京", "800"), ("成都", "450")]
    cells = [
        line(text, 300 * x, 40 * y, 100) for y, row in enumerate(rows) for x, text in enumerate(row)
    ]
    assert read(*cells, line("Beyond that, ask.", 0, 150)) == [
        ("table", "City | Limit\n北京 | 800\n成都 | 450"),
        ("paragraph", "Beyond that, ask."),
    ]


def test_columns_are_read_one_after_the_other_below_what_stands_across() -> None:
    columns = [
        line(f"{side}{n}", x, 60 + 25 * n) for n in range(5) for side, x in (("l", 0), ("r", 450))
    ]
    assert read(line("Across", 0, 0, 850), *columns) == [
        ("paragraph", "Across"),
        ("paragraph", "l0\nl1\nl2\nl3\nl4"),
        ("paragraph", "r0\nr1\nr2\nr3\nr4"),
    ]


def test_nothing_recognised_adds_nothing() -> None:
    assert read() == []
