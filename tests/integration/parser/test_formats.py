"""Real files through the real reader in its child process."""

import random
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from libs.documents.model import ParsedDocument
from libs.documents.serialise import load_document
from libs.kernel import PermanentError
from libs.storage.objects.blocks import blocks
from services.ingest.parser.adapters.child import Limits
from services.ingest.parser.adapters.pool import ParserPool, open_pool
from services.ingest.parser.ports import ParseRequest
from tests.integration.parser.made_files import (
    archive,
    docx,
    paragraph,
    pdf,
    picture,
    ruled_pdf,
    scan_pdf,
    strict_xlsx,
    table,
)
from tests.integration.parser.tikas import TIKAS, tika_url
from tests.parsed import shape

MAX_CHARS = 50_000
WORD = docx(
    paragraph("员工手册", "H1")
    + paragraph("考勤", "H2")
    + paragraph("年休假五天 𠮷😀。")
    + table(("年限", "天数"), ("1 年", "5 天"))
)
MAIL = (
    b"From: a@example.com\r\nTo: b@example.com\r\nSubject: Holiday plan\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n\r\nSee you in June.\r\n"
)
PGP = b"-----BEGIN PGP MESSAGE-----\n\nhIwDY32hYGCE8MkBA\n=zzaA\n-----END PGP MESSAGE-----\n"
HTML = b"<html><body><h2>Title</h2><p>one\ntwo</p><script>no()</script></body></html>"
NOISE = random.Random(7).randbytes(5000)  # noqa: S311 - any bytes


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TIKAS)
async def pool(request: pytest.FixtureRequest) -> AsyncIterator[ParserPool]:
    limits = Limits(timeout_s=60, max_chars=MAX_CHARS, niceness=0)
    async with open_pool(1, limits, tika_url=tika_url(request)) as pool:
        yield pool


async def read(pool: ParserPool, data: bytes, name: str) -> ParsedDocument:
    parsed = await pool.parse(blocks(data), ParseRequest(name, ""))
    document = load_document(parsed.files)
    assert parsed.char_count == len(document.text)
    return document


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_word(pool: ParserPool) -> None:
    document = await read(pool, WORD, "手册.docx")
    assert shape(document) == [
        ("h1", "员工手册"),
        ("h2", "考勤"),
        ("paragraph", "年休假五天 𠮷😀。"),
        ("table", "年限 | 天数\n1 年 | 5 天"),
    ]
    assert document.table_count == 1
    assert document.media_type.endswith("wordprocessingml.document")


async def test_pdf_pages(pool: ParserPool) -> None:
    document = await read(pool, pdf("The first page.", "The second page."), "a.pdf")
    assert [
        (text, block.page)
        for (_, text), block in zip(shape(document), document.blocks, strict=True)
        if text
    ] == [
        ("The first page.", 1),
        ("The second page.", 2),
    ]
    assert document.page_count == 2


async def test_headings_and_ruled_tables_of_a_pdf(pool: ParserPool) -> None:
    rows = [("City", "Limit"), ("Beijing", "800"), ("Chengdu", "450")]
    data = ruled_pdf(rows, heading="Travel", body="These limits hold for one night each.")
    document = await read(pool, data, "a.pdf")
    assert shape(document) == [
        ("h1", "Travel"),
        ("paragraph", "These limits hold for one night each."),
        ("table", "City | Limit\nBeijing | 800\nChengdu | 450"),
    ]
    assert document.table_count == 1


async def test_pages_without_text_are_counted(pool: ParserPool) -> None:
    document = await read(pool, pdf("The only page that has any text on it.", ""), "a.pdf")
    assert document.warnings == ["1 of 2 pages have no text (blank or pictures)"]


async def test_html_under_a_wrong_name(pool: ParserPool) -> None:
    document = await read(pool, HTML, "really.pdf")
    assert shape(document) == [("h2", "Title"), ("paragraph", "one two")]


async def test_mail_keeps_its_subject_and_people(pool: ParserPool) -> None:
    document = await read(pool, MAIL, "a.eml")
    assert shape(document)[0] == ("h1", "Holiday plan")
    assert "a@example.com" in document.text
    assert shape(document)[-1] == ("paragraph", "See you in June.")


async def test_a_strict_workbook(pool: ParserPool) -> None:
    document = await read(pool, strict_xlsx(), "a.xlsx")
    assert shape(document) == [("h1", "考勤"), ("table", "陈望舒 | 21")]


async def test_text_in_gb18030(pool: ParserPool) -> None:
    document = await read(pool, "第一章 总则\n年休假五天。".encode("gb18030"), "a.txt")
    assert shape(document) == [("h1", "第一章 总则"), ("paragraph", "年休假五天。")]


async def test_an_archive_is_one_document_with_a_heading_for_each_file(pool: ParserPool) -> None:
    document = await read(pool, archive({"制度/手册.docx": WORD, "a.bin": NOISE}), "a.zip")
    assert shape(document)[:3] == [("h1", "制度/手册.docx"), ("h2", "员工手册"), ("h3", "考勤")]
    assert document.table_count == 1
    assert document.warnings == ["a.bin: not read (unsupported)"]


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "empty.pdf", "empty"),
        (docx(paragraph("")), "blank.docx", "empty"),
        (pdf("", ""), "scan.pdf", "no-text-layer"),
        (picture(), "blank.png", "no-text-layer"),
        (b"\x89PNG\r\n\x1a\n" + NOISE, "scan.png", "corrupt"),
        (b"%PDF-1.4\n" + NOISE, "broken.pdf", "corrupt"),
        (b"PK\x03\x04" + NOISE, "broken.docx", "corrupt"),
        (NOISE, "noise.bin", "unsupported"),
        (b"Rar!\x1a\x07\x01" + NOISE, "a.rar", "unsupported-archive"),
        (archive({"a.bin": NOISE}), "named.docx", "unsupported"),
        (b"Subject: x\r\nFrom: a@example.com\r\n\r\n" + PGP, "pgp.eml", "encrypted"),
        (docx(paragraph("x" * (MAX_CHARS + 1))), "bomb.docx", "too-large"),
        (b"word " * MAX_CHARS, "long.txt", "too-large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_refusals(pool: ParserPool, data: bytes, name: str, reason: str) -> None:
    with pytest.raises(PermanentError) as caught:
        await read(pool, data, name)
    assert caught.value.reason == reason
    assert caught.value.detail


async def test_xml_that_breaks_off_in_the_middle_is_never_read_in_part(pool: ParserPool) -> None:
    """The native stream reports the failure in some of the reads only."""
    data = b'<?xml version="1.0"?><a>' + b"<p>some text</p>" * 20 + b"<p>broken</q></a>"
    for _ in range(12):
        with pytest.raises(PermanentError, match="corrupt"):
            await read(pool, data, "broken.xml")


async def test_scanned_pages_are_recognised_beside_those_with_text(pool: ParserPool) -> None:
    document = await read(pool, scan_pdf("Invoice 2031", "", "Total 450 EUR"), "scan.pdf")
    assert [
        (text, block.page)
        for (_, text), block in zip(shape(document), document.blocks, strict=True)
        if text
    ] == [("Invoice 2031", 1), ("Total 450 EUR", 3)]
    assert document.page_count == 3
    assert any("2 pages were read by text recognition" in warning for warning in document.warnings)


async def test_each_picture_of_an_image_file_is_a_page(pool: ParserPool) -> None:
    document = await read(pool, picture("Page one", "Page two"), "fax.tiff")
    assert document.text == "Page one\n\nPage two"
    assert (document.page_count, document.media_type) == (2, "image/tiff")


async def test_scans_are_refused_when_recognition_is_off() -> None:
    async with open_pool(1, Limits(timeout_s=60, ocr=False, niceness=0)) as pool:
        for data, name in ((picture("Page one"), "a.png"), (scan_pdf("Page one"), "a.pdf")):
            with pytest.raises(PermanentError, match="SLUICE_OCR") as caught:
                await read(pool, data, name)
            assert caught.value.reason == "no-text-layer"


async def test_pages_over_the_limit_are_counted() -> None:
    limits = Limits(timeout_s=60, max_pictures=1, niceness=0)
    async with open_pool(1, limits) as pool:
        document = await read(pool, scan_pdf("Page one", "Page two"), "a.pdf")
    assert document.text == "Page one"
    assert "1 pictures over the limit were not read" in document.warnings


async def test_a_cut_off_document_says_that_text_may_be_missing(pool: ParserPool) -> None:
    document = await read(pool, WORD[:-60], "cut.docx")
    assert any("cut off" in warning for warning in document.warnings)
    assert "年休假五天" in document.text
