"""Large files are read in bounded memory: the child is killed beyond the limit set here."""

from collections.abc import AsyncIterator, Iterable

import pytest

from libs.documents.serialise import load_document
from libs.kernel import PermanentError
from services.ingest.parser.adapters.child import Limits
from services.ingest.parser.adapters.pool import open_pool
from services.ingest.parser.ports import Parsed, ParseRequest
from tests.integration.parser.made_files import large_pdf

pytestmark = pytest.mark.integration

LIMITS = Limits(max_rss_bytes=450_000_000, niceness=0)  # an idle child holds some 150 MB


async def parse(pieces: Iterable[bytes], name: str) -> Parsed:
    async def blocks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async with open_pool(1, LIMITS) as pool:
        return await pool.parse(blocks(), ParseRequest(name, ""))


async def test_a_thousand_pages() -> None:
    parsed = await parse(large_pdf(1000), "long.pdf")
    document = load_document(parsed.files)
    pages = {block.page for block in document.blocks if block.end > block.start}
    assert pages == set(range(1, 1001))
    assert document.text.count("Line ") == 45_000
    assert document.warnings == []


async def test_three_hundred_megabytes_of_pictures_with_text() -> None:
    parsed = await parse(large_pdf(10, image_bytes=30_000_000), "large.pdf")
    assert parsed.page_count == 10
    assert load_document(parsed.files).text.count("Line ") == 450


async def test_three_hundred_megabytes_of_text_are_refused_without_being_read() -> None:
    with pytest.raises(PermanentError) as caught:
        await parse((b"A line of text.\n" * 65_536 for _ in range(300)), "large.txt")
    assert caught.value.reason == "too-large"
