"""Slides come in the order they are shown, whatever order the parser gave them in."""

import zipfile
from pathlib import Path

from libs.documents.builder import BlockBuilder
from libs.documents.model import BlockKind
from services.ingest.parser.domain.slides import slide_order, slides_as_pages

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "http://schemas.openxmlformats.org/presentationml/2006/main"


def presentation(path: Path, content: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ppt/presentation.xml", content)
    return path


def test_the_order_is_that_of_the_presentation(tmp_path: Path) -> None:
    ids = "".join(f'<p:sldId id="{n}" r:id="rId{n}"/>' for n in (7, 9, 10, 11))
    content = f'<p:p xmlns:p="{MAIN}" xmlns:r="{OFFICE}"><p:sldIdLst>{ids}</p:sldIdLst></p:p>'
    assert slide_order(presentation(tmp_path / "a.pptx", content)) == [2, 3, 0, 1]


def test_other_and_damaged_files_have_no_order(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"PK\x03\x04 cut")
    assert slide_order(tmp_path / "a.docx") is None
    assert slide_order(presentation(tmp_path / "b.pptx", "<p")) is None


def test_each_slide_becomes_a_page() -> None:
    builder = BlockBuilder()
    for text in ("third", "third's note", "first", "second", "attachment"):
        builder.add(BlockKind.PARAGRAPH, text)
    again = slides_as_pages(builder.text, builder.blocks, [0, 2, 3], 4, [1, 2, 0], 1000)
    found = [(again.text[b.start : b.end], b.page) for b in again.blocks if b.end > b.start]
    assert found == [
        ("first", 1),
        ("second", 2),
        ("third", 3),
        ("third's note", 3),
        ("attachment", None),
    ]
    assert again.page_count == 3
