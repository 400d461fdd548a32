"""A hostile file ends only itself, with a reason, in bounded memory and time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from libs.kernel import PermanentError
from libs.storage.objects.blocks import blocks
from services.ingest.parser.adapters.child import Limits
from services.ingest.parser.adapters.pool import ParserPool, open_pool
from services.ingest.parser.ports import Parsed, ParseRequest
from tests.integration.security import hostile_files as files

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

# A fresh process, as after one that was ended, has its start within the limit.
LIMITS = Limits(timeout_s=60, small_timeout_s=15, max_rss_bytes=700_000_000, niceness=0)
GOOD = b"The next document is read as ever."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ParserPool]:
    async with open_pool(1, LIMITS) as pool:
        yield pool


async def parse(pool: ParserPool, data: bytes, name: str) -> Parsed:
    return await pool.parse(blocks(data), ParseRequest(name, ""))


REFUSED: list[tuple[str, Callable[[], bytes], str]] = [
    ("a.docx", files.word_bomb, "decompression-bomb"),
    ("small.docx", lambda: files.word_bomb(b"0" * 5_000_000), "decompression-bomb"),
    ("a.xlsx", files.sheet_bomb, "decompression-bomb"),
    ("a.pptx", files.slide_bomb, "decompression-bomb"),
    ("a.odt", files.open_document_bomb, "decompression-bomb"),
    ("a.epub", files.book_bomb, "decompression-bomb"),
    ("lying.docx", files.understated_bomb, "out-of-memory"),
    ("a.txt.gz", files.gzip_bomb, "decompression-bomb"),
    ("a.bz2", files.bzip2_bomb, "decompression-bomb"),
    ("deep.xml", files.deep_xml, "corrupt"),
    ("laughs.xml", files.with_entities, "corrupt"),
    ("many.pdf", files.page_tree, "too-many-pages"),
    ("tree.pdf", files.endless_page_tree, "no-text-layer"),
    ("form.pdf", files.endless_form, "parse-timeout"),
    ("arrays.pdf", files.nested_arrays, "no-text-layer"),
]


@pytest.mark.parametrize(("name", "make", "reason"), REFUSED, ids=[case[0] for case in REFUSED])
async def test_it_is_refused_and_the_next_one_is_read(
    pool: ParserPool, name: str, make: Callable[[], bytes], reason: str
) -> None:
    with pytest.raises(PermanentError) as caught:
        await parse(pool, make(), name)
    assert caught.value.reason == reason
    assert caught.value.detail.endswith(".")
    assert (await parse(pool, GOOD, "good.txt")).files.text == GOOD


READ: list[tuple[str, Callable[[], bytes], bytes]] = [
    ("deep.html", lambda: files.deep_html(50_000), b"deep"),
    ("deep.md", files.deep_markdown, b"deep"),
    ("deep.json", files.deep_json, b"["),
    ("nested.docx", files.nested_zip, b"text"),
    ("up.docx", lambda: files.climbing("../../../sluice-climbed"), b"harmless text"),
    ("outline.pdf", files.endless_outline, b"harmless text"),
    ("lying.docx", lambda: files.lying(""), b"This is a PDF"),
    ("lying.txt", lambda: files.lying(""), b"This is a PDF"),
    ("lying.png", lambda: files.lying(""), b"This is a PDF"),
]


@pytest.mark.parametrize(("name", "make", "text"), READ, ids=[case[0] for case in READ])
async def test_it_does_no_harm(
    pool: ParserPool, name: str, make: Callable[[], bytes], text: bytes
) -> None:
    parsed = await parse(pool, make(), name)
    assert text in parsed.files.text
    assert len(parsed.files.text) < 1_000_000


async def test_a_file_of_the_machine_is_never_read(pool: ParserPool, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the machine's own secret")
    for name, data in (
        ("entity.xml", files.with_a_file_entity(str(secret))),
        ("entity.svg", files.with_a_fetched_entity(f"file://{secret}")),
        ("entity.docx", files.word_with_entity(f"file://{secret}")),
        ("template.docx", files.word_with_template(f"file://{secret}")),
        ("page.html", files.page_that_fetches(f"file://{secret}")),
        ("link.docx", files.linking(str(secret))),
        ("absolute.docx", files.climbing(str(secret))),
    ):
        text = b""
        with contextlib.suppress(PermanentError):
            text = (await parse(pool, data, name)).files.text
        assert b"secret" not in text
    assert secret.read_text() == "the machine's own secret"


async def test_nothing_is_fetched_from_the_network(pool: ParserPool) -> None:
    asked: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/secret"
    async with server:
        for name, data in (
            ("entity.xml", files.with_a_fetched_entity(url)),
            ("entity.svg", files.with_a_fetched_entity(url)),
            ("entity.docx", files.word_with_entity(url)),
            ("template.docx", files.word_with_template(url)),
            ("page.html", files.page_that_fetches(url)),
        ):
            text = b""
            with contextlib.suppress(PermanentError):
                text = (await parse(pool, data, name)).files.text
            assert (b"harmless text" in text) is name.endswith((".docx", ".html"))
        assert (await parse(pool, GOOD, "good.txt")).files.text == GOOD
    assert asked == []
