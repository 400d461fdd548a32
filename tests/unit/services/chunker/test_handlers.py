"""A chunk set is announced whole or not at all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from libs.contracts import DocumentParsed
from libs.documents.model import Block, BlockKind, ParsedDocument
from libs.documents.serialise import dump_document
from libs.eventbus.testing import InMemoryBus
from libs.storage.keys import parsed_key, text_key
from libs.storage.sql import Database, UnitOfWork, chunks, documents
from services.chunker.handlers import CHUNKS_PER_UNIT, Deps, subscriptions
from tests.fakes import FakeObjectStore
from tests.library import Library
from tests.servers.databases import sqlite

OF = ("t", "d", 1)


def large_document() -> ParsedDocument:
    """More chunks than one unit of work takes."""
    paragraph = "Travel expenses are paid within three working days of the claim. " * 12
    count = CHUNKS_PER_UNIT
    text = "\n".join([paragraph] * count)
    size = len(paragraph)
    blocks = [
        Block(BlockKind.PARAGRAPH, at * (size + 1), at * (size + 1) + size, None, None)
        for at in range(count)
    ]
    return ParsedDocument(text, blocks, "text/plain")


class SharedDatabase(Database):
    """After its second unit of work another chunker, slower to start, clears the generation."""

    units = 0

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        async with super().work() as sql:
            yield sql
        self.units += 1
        if self.units == 2:
            async with super().work() as sql:
                await self.interfere(sql)

    async def interfere(self, sql: UnitOfWork) -> None:
        await chunks.clear(sql, *OF)


class MixedDatabase(SharedDatabase):
    """The other chunker cuts elsewhere, as a model may say so, and writes one chunk of its own."""

    async def interfere(self, sql: UnitOfWork) -> None:
        first, *_ = await chunks.parents(sql, *OF)
        await chunks.add(sql, *OF, [replace(first, end=first.end - 9, text=first.text[:-9])])


@pytest.mark.parametrize("kind", [SharedDatabase, MixedDatabase])
async def test_a_set_that_another_chunker_cut_into_is_not_announced(
    tmp_path: Path, kind: type[SharedDatabase]
) -> None:
    files = dump_document(large_document())
    objects = FakeObjectStore({parsed_key(*OF): files.document, text_key(*OF): files.text})
    async with sqlite(tmp_path) as db:
        await Library(db).record("d", state="parsed", active=None)
        bus = InMemoryBus(db, subscriptions(Deps(kind(db.engine), objects)))
        await bus.deliver(DocumentParsed(*OF, parsed_key(*OF), text_key(*OF), 1))
        async with db.reading() as sql:
            assert (await documents.load(sql, "t", "d"))["state"] == "parsed"
        await bus.run_due()
        async with db.reading() as sql:
            row = await documents.load(sql, "t", "d")
            stored = await chunks.count(sql, *OF)
    assert row["state"] == "chunked"
    assert stored == row["counts"]["parents"] + row["counts"]["chunks"] > CHUNKS_PER_UNIT
