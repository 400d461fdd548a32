"""Every file of the collection gives what its manifest expects; nothing is silently short.

`SLUICE_TEST_FILES` names one more folder with a `manifest.jsonl`, such as a larger collection.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from libs.documents.model import ParsedDocument
from libs.documents.serialise import load_document
from libs.kernel import PermanentError
from libs.storage.objects.blocks import blocks
from services.ingest.parser.adapters.child import Limits
from services.ingest.parser.adapters.pool import ParserPool, open_pool
from services.ingest.parser.ports import ParseRequest
from tests.integration.parser.tikas import ELSEWHERE, TIKAS, tika_url

FILES = Path(__file__).parents[2] / "files"
FOLDERS = [FILES, *(Path(folder) for folder in [os.environ.get("SLUICE_TEST_FILES")] if folder)]

pytestmark = pytest.mark.asyncio(loop_scope="module")


def entries() -> Iterator[Any]:
    for folder in FOLDERS:
        for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            yield pytest.param((folder / entry["file"]).read_bytes(), entry, id=entry["file"])


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TIKAS)
async def pool(request: pytest.FixtureRequest) -> AsyncIterator[ParserPool]:
    limits = Limits(timeout_s=300, small_timeout_s=300, niceness=0)
    async with open_pool(1, limits, tika_url=tika_url(request)) as pool:
        yield pool


async def read(pool: ParserPool, name: str, data: bytes) -> ParsedDocument | str:
    """The document, or the reason why there is none."""

    try:
        parsed = await pool.parse(blocks(data), ParseRequest(name, ""))
    except PermanentError as exc:
        return exc.reason
    document = load_document(parsed.files)
    assert parsed.char_count == len(document.text)
    assert_blocks_cover_the_text(document)
    return document


def assert_blocks_cover_the_text(document: ParsedDocument) -> None:
    position = 0
    for block in document.blocks:
        assert position <= block.start <= block.end
        assert not document.text[position : block.start].strip()
        position = block.end
    assert not document.text[position:].strip()


def bare(text: str) -> str:
    """Without white space, invisible marks and the separators of cells."""
    return re.sub(r"[\s|\ufeff]+", "", text)


@pytest.mark.parametrize(("data", "entry"), list(entries()))
async def test_a_file_gives_what_its_manifest_expects(
    pool: ParserPool, data: bytes, entry: dict[str, Any]
) -> None:
    found = await read(pool, entry["file"], data)
    differs = ELSEWHERE.get(entry["file"]) if pool.tika_url else None
    if differs is not None:
        said = found if isinstance(found, str) else "; ".join(found.warnings)
        assert differs in said
        return
    status, _, reason = entry["status"].partition(":")
    if status == "rejected" or status == "empty":
        partial = isinstance(found, ParsedDocument) and found.warnings
        accepted = partial and "accepting with a warning is fine" in entry.get("expect", "")
        assert found == (reason or "empty") or accepted
        return
    if status == "archive" and isinstance(found, str):
        assert found in {"too-deep", "no-text-layer"}  # of what is in it nothing can be read
        return
    assert isinstance(found, ParsedDocument), found
    if status == "partial":
        assert found.warnings
        return
    text = bare(found.text)
    if "a clear failure is acceptable" not in entry.get("expect", ""):
        assert [part for part in entry["expect_contains"] if bare(part) not in text] == []
    assert [part for part in entry["expect_not_contains"] if bare(part) in text] == []


async def test_every_file_says_where_it_comes_from() -> None:
    lines = (FILES / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    ours = {entry["file"]: entry for entry in map(json.loads, lines)}
    assert all(entry["source"] for entry in ours.values())
    present = {path.name for path in FILES.iterdir()} - {"README.md", "manifest.jsonl"}
    assert present == set(ours)
    assert {entry["licence"] for entry in ours.values()} == {"Apache-2.0", "MIT", "CC0-1.0"}
