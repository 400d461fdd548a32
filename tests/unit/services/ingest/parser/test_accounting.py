"""Tables and rows of Office documents are counted apart from their reader, and losses are told."""

import zipfile
from pathlib import Path

import pytest

from libs.documents.builder import BlockBuilder
from libs.documents.model import BlockKind, ParsedDocument
from services.ingest.parser.domain.accounting import Counted, counted_in, row_count, shortfalls
from services.ingest.parser.domain.reading import read_document

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def packed(path: Path, part: str, content: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(part, content)
    return path


def word(path: Path, body: str) -> Path:
    return packed(path, "word/document.xml", f'<w:document xmlns:w="{WORD}">{body}</w:document>')


def sheet(path: Path, rows: str) -> Path:
    content = f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>'
    return packed(path, "xl/worksheets/sheet1.xml", content)


TEXT = "<w:p><w:r><w:t>text</w:t></w:r></w:p>"
TABLE = f"<w:tbl><w:tr><w:tc>{TEXT}</w:tc></w:tr></w:tbl>"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (TEXT, 0),
        (TEXT + TABLE + TEXT + TABLE, 2),
        (f"<w:tbl><w:tr><w:tc>{TABLE}{TABLE}</w:tc></w:tr></w:tbl>", 1),
        (TEXT + "<w:tbl><w:tr><w:tc/></w:tr></w:tbl>" + TEXT, 0),
    ],
    ids=["none", "two", "nested in one", "without text"],
)
def test_tables_of_a_word_file(tmp_path: Path, body: str, count: int) -> None:
    assert counted_in(word(tmp_path / "a.docx", body)) == Counted(tables=count)


MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def test_an_equation_that_did_not_come_out_is_told(tmp_path: Path) -> None:
    runs = [["A=", "π", "r", "2"], ["lim", "n→∞"], ["x"], []]
    body = "".join(
        f'<m:oMath xmlns:m="{MATH}">{"".join(f"<m:r><m:t>{t}</m:t></m:r>" for t in run)}</m:oMath>'
        for run in runs
    )
    path = word(tmp_path / "a.docx", f"<w:p>{body}</w:p>")
    told = {
        "The area is A = π r 2 and limit lim is n→∞ of x": [],
        "The area is . The limit lim is of n→∞": ["2 equations were not read"],
        "The area is": ["3 equations were not read"],
    }
    for text, expected in told.items():
        assert list(shortfalls(path, text, [])) == expected


def test_rows_of_a_workbook_are_those_with_values(tmp_path: Path) -> None:
    rows = (
        "<row><c><v>1</v></c><c><v>2</v></c></row><row/><row><c><f>SUM(A1)</f></c></row>"
        "<row><c><is><t>text</t></is></c></row>"
    )
    assert counted_in(sheet(tmp_path / "a.xlsx", rows)) == Counted(rows=2)


def test_a_damaged_file_is_left_to_its_reader(tmp_path: Path) -> None:
    assert counted_in(packed(tmp_path / "a.docx", "word/document.xml", "<w:tbl>")) == Counted()
    (tmp_path / "b.docx").write_bytes(b"PK\x03\x04 no archive")
    assert counted_in(tmp_path / "b.docx") == Counted()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: word(path, TABLE * 3), "2 of 3 tables were not read"),
        (lambda path: sheet(path, "<row><c><v>1</v></c></row>" * 5), "3 of 5 rows were not read"),
    ],
    ids=["tables", "rows"],
)
def test_what_the_reader_lost_is_told(tmp_path: Path, make: object, expected: str) -> None:
    def lossy(path: Path, max_chars: int) -> ParsedDocument:
        builder = BlockBuilder(max_chars)
        builder.add(BlockKind.TABLE, "a | b\nc | d")
        return ParsedDocument(builder.text, builder.blocks, "application/x")

    path = make(tmp_path / "file")  # type: ignore[operator]
    document = read_document(path, "file", "", max_chars=1000, tika=lossy)
    assert document.warnings == [expected]


def test_rows_are_the_lines_of_tables() -> None:
    builder = BlockBuilder()
    builder.add(BlockKind.PARAGRAPH, "one\ntwo")
    builder.add(BlockKind.TABLE, "a | b\nc | d")
    builder.add(BlockKind.TABLE, "| a | b |\n|:---|---:|\n| - | - |")
    assert row_count(builder.text, builder.blocks) == 4
