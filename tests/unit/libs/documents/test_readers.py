"""Readers lay blocks over a text: offsets rebuild it, structure is found."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.documents.builder import BlockBuilder, TooLongError
from libs.documents.headings import heading_rank, with_numbered_headings
from libs.documents.markdown import heading_title, read_markdown
from libs.documents.model import Block, BlockKind, ParsedDocument
from libs.documents.normalise import normalise_text, replacement_share
from libs.documents.plain import read_plain
from libs.documents.reflow import reflow
from libs.documents.serialise import DocumentFiles, dump_document, load_document
from libs.documents.tables import read_csv
from libs.documents.xhtml import MAX_DEPTH, TooDeepError, read_xhtml
from libs.kernel import PermanentError

SOURCE = st.text(alphabet="ab# -*|>`\n\t1.第一章、（）节标题。😀\u0301", max_size=300)
XHTML = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>no</title></head><body>{}</body></html>'


def shape(text: str, blocks: list[Block]) -> list[tuple[str, str]]:
    return [(f"h{b.level}" if b.level else b.kind.value, text[b.start : b.end]) for b in blocks]


def xhtml(body: str) -> tuple[BlockBuilder, int]:
    builder = BlockBuilder()
    target = read_xhtml([XHTML.format(body).encode()], builder)
    return builder, target.table_count


def assert_exact(text: str, blocks: list[Block]) -> None:
    position = 0
    for block in blocks:
        assert text[position : block.start].strip() == ""
        assert position <= block.start <= block.end
        assert text[block.start : block.end].strip() == text[block.start : block.end]
        position = block.end
    assert text[position:].strip() == ""


@given(SOURCE)
@settings(deadline=None)
def test_markdown_blocks_hold_the_whole_source(source: str) -> None:
    text, blocks = read_markdown(source)
    assert text == source
    assert_exact(text, blocks)


@given(SOURCE)
@settings(deadline=None)
def test_plain_blocks_hold_the_whole_source(source: str) -> None:
    text, blocks = read_plain(source)
    assert text == source
    assert_exact(text, blocks)


def test_markdown_structure() -> None:
    source = (
        "# 标题 #\n\n正文\n第二行\n\n- 一\n  - 二\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "```py\n# no heading\n```\n\nSetext\n------\n\n> quoted\n\n---\n"
    )
    assert shape(*read_markdown(source)) == [
        ("h1", "# 标题 #"),
        ("paragraph", "正文\n第二行"),
        ("list_item", "- 一"),
        ("list_item", "- 二"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("code", "```py\n# no heading\n```"),
        ("h2", "Setext\n------"),
        ("paragraph", "> quoted"),
        ("paragraph", "---"),
    ]
    assert heading_title("# 标题 #") == "标题"
    assert heading_title("## About C#") == "About C#"
    assert heading_title("C#") == "C#"
    assert heading_title("Setext\n------") == "Setext"


def test_plain_text_headings_in_chinese() -> None:
    source = (
        "员工手册\n\n第一章 总则\n本手册适用于全体员工。\n一、适用范围\n全体。\n（一）正式员工\n"
        "包括。\n第二章 考勤\n2.1 工作时间\n九点到六点。\n"
    )
    assert shape(*read_plain(source)) == [
        ("paragraph", "员工手册"),
        ("h1", "第一章 总则"),
        ("paragraph", "本手册适用于全体员工。"),
        ("h2", "一、适用范围"),
        ("paragraph", "全体。"),
        ("h3", "（一）正式员工"),
        ("paragraph", "包括。"),
        ("h1", "第二章 考勤"),
        ("h4", "2.1 工作时间"),
        ("paragraph", "九点到六点。"),
    ]


def test_numbered_lists_are_no_headings() -> None:
    _, blocks = read_plain("买：\n\n1. 苹果\n2. 梨\n3. 桃\n")
    assert [block.kind for block in blocks if block.kind is BlockKind.HEADING] == []


@pytest.mark.parametrize(
    "line",
    [
        "1.2 million people live here.",
        "第一章讲了很多东西，",
        "2024.03.01",
        "3.14",
        "第一节 " + "很长" * 40,
        "1.1 Scope ........ 5",
    ],
)
def test_these_lines_are_no_headings(line: str) -> None:
    assert heading_rank(line) is None


def test_csv_in_any_dialect_becomes_rows_of_cells() -> None:
    expected = "姓名 | 部门\n陈, 望舒 | 研发 中心"
    assert read_csv('姓名,部门\n"陈, 望舒","研发\n中心"\n') == expected
    assert read_csv('姓名;部门\n"陈, 望舒";研发 中心\n') == expected
    assert read_csv("姓名\t部门\r\n陈, 望舒\t研发 中心\r\n") == expected
    assert read_csv("one\ntwo\n") == "one\ntwo"


def test_xhtml_structure_pages_and_tables() -> None:
    builder, tables = xhtml(
        '<div class="page"><p/><h1>标 题</h1><p>第一\n行<br/>第二行</p>'
        "<ul><li>甲</li><li>乙<p>丙</p></li></ul>"
        "<table><tr><th>a</th><th> b </th></tr><tr><td><p>1</p><p>x</p></td><td>2</td></tr>"
        '<tr><td/></tr></table></div><div class="page"><pre>x = 1\n    y</pre>loose</div>'
    )
    assert shape(builder.text, builder.blocks) == [
        ("h1", "标 题"),
        ("paragraph", "第一\n行\n第二行"),
        ("list_item", "甲"),
        ("list_item", "乙"),
        ("list_item", "丙"),
        ("table", "a | b\n1 x | 2"),
        ("page_break", ""),
        ("code", "x = 1\n    y"),
        ("paragraph", "loose"),
    ]
    assert [block.page for block in builder.blocks] == [1, 1, 1, 1, 1, 1, 1, 2, 2]
    assert tables == 1


def test_nested_tables_are_part_of_their_cell() -> None:
    builder, tables = xhtml(
        "<table><tr><td>a<table><tr><td>x</td><td>y</td></tr></table></td><td>b</td></tr></table>"
    )
    assert builder.text == "a x y | b"
    assert tables == 1


def test_names_of_embedded_files_count_only_when_text_follows() -> None:
    builder, _ = xhtml(
        '<p>a</p><div class="package-entry"><h1>image1.png</h1></div>'
        '<div class="package-entry"><h1>note.txt</h1><p>inside</p></div><p>z</p>'
    )
    assert shape(builder.text, builder.blocks) == [
        ("paragraph", "a"),
        ("h1", "note.txt"),
        ("paragraph", "inside"),
        ("paragraph", "z"),
    ]


def test_text_and_depth_are_bounded() -> None:
    with pytest.raises(TooLongError):
        read_xhtml([XHTML.format("<p>12345678</p><p>x</p>").encode()], BlockBuilder(max_chars=8))
    deep = "<div>" * (MAX_DEPTH + 1) + "</div>" * (MAX_DEPTH + 1)
    with pytest.raises(TooDeepError):
        read_xhtml([XHTML.format(deep).encode()], BlockBuilder())


def test_external_entities_stay_unread(tmp_path) -> None:  # type: ignore[no-untyped-def]
    secret = tmp_path / "secret"
    secret.write_text("secret")
    body = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{secret}">]><x><p>a&e;b</p></x>'
    builder = BlockBuilder()
    read_xhtml([body.encode()], builder)
    assert "secret" not in builder.text


def test_normalising() -> None:
    assert (
        normalise_text("a\r\nb\rc\u2028d\x00\u200b\ufeff\u00ade\u00a0f\ud800")
        == "a\nb\nc\nde f\ufffd"
    )
    assert normalise_text("👩\u200d👩\u200d👧 𠮷") == "👩\u200d👩\u200d👧 𠮷"
    assert replacement_share("a\ufffd \n") == 0.5
    assert replacement_share("") == 0.0


def test_a_document_survives_storage() -> None:
    text, blocks = read_markdown("# 一\n\n二 😀\n")
    document = ParsedDocument(text, blocks, "text/markdown", "一", "zh", 3, 1, ["careful"])
    files = dump_document(document)
    assert load_document(files) == document
    for damaged in (
        DocumentFiles(files.document, files.text[:-1]),
        DocumentFiles(b"{}", files.text),
        DocumentFiles(b"", files.text),
    ):
        with pytest.raises(PermanentError, match="damaged-parse"):
            load_document(damaged)


def test_in_flowing_text_only_br_ends_a_line() -> None:
    builder = BlockBuilder()
    body = "<p>one\n two<br/>three</p><pre>a\n  b</pre>"
    read_xhtml([XHTML.format(body).encode()], builder, flowing=True)
    assert shape(builder.text, builder.blocks) == [
        ("paragraph", "one two\nthree"),
        ("code", "a\n  b"),
    ]


def test_lines_of_a_pdf_page_become_paragraphs_again() -> None:
    builder, _ = xhtml(
        '<div class="page"><p>第一章 总则</p>'
        "<p>公司坚持公开招聘、同工同酬、按岗定薪的原则。任何部门不得以性别、</p>"
        "<p>籍贯为由拒绝录用合格人员。</p>"
        "<p>\ufffd “综合工时岗”指以季度为周期核算工时的岗位。</p>"
        "<p>It was a long line of English text that filled the whole page and en-\n"
        "gaged everybody, and it went on to the next line of the very same paragraph\n"
        "until here.</p>"
        "<p>年限 天数</p><p>1 年 5 天</p><p>Preface . . . . . . . . . 3</p></div>"
        '<div class="page"><p>第二页。</p></div>'
    )
    again = reflow(builder.text, builder.blocks, 10_000)
    assert_exact(again.text, again.blocks)
    assert shape(again.text, again.blocks) == [
        ("paragraph", "第一章 总则"),
        (
            "paragraph",
            "公司坚持公开招聘、同工同酬、按岗定薪的原则。任何部门不得以性别、"
            "籍贯为由拒绝录用合格人员。",
        ),
        ("list_item", "• “综合工时岗”指以季度为周期核算工时的岗位。"),
        (
            "paragraph",
            "It was a long line of English text that filled the whole page and en-gaged "
            "everybody, and it went on to the next line of the very same paragraph until here.",
        ),
        ("paragraph", "年限 天数"),
        ("paragraph", "1 年 5 天"),
        ("paragraph", "Preface …… 3"),
        ("page_break", ""),
        ("paragraph", "第二页。"),
    ]
    assert [block.page for block in again.blocks] == [1, 1, 1, 1, 1, 1, 1, 1, 2]


def test_numbered_headings_come_below_a_title_that_alone_was_marked() -> None:
    builder = BlockBuilder()
    builder.add(BlockKind.HEADING, "Handbook", level=1)
    for part in ("第一章 总则", "Text of it.", "第二章 考勤", "More text."):
        builder.add(BlockKind.PARAGRAPH, part)
    blocks = with_numbered_headings(builder.text, builder.blocks)
    assert [(b.level, builder.text[b.start : b.end]) for b in blocks if b.level] == [
        (1, "Handbook"),
        (2, "第一章 总则"),
        (2, "第二章 考勤"),
    ]
    marked = [*builder.blocks]
    marked[1:] = [replace(b, kind=BlockKind.HEADING, level=2) for b in builder.blocks[1::2]]
    assert with_numbered_headings(builder.text, marked) == marked
