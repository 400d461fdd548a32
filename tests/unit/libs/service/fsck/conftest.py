"""A library in all four stores, and one look at it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from libs.kernel import chunk_id
from libs.service.fsck import Examiner, Finding, Repairs, Stores, Tally, scan
from libs.storage.sql import graph
from tests.fakes import FakeObjectStore
from tests.library import Library
from tests.servers.databases import sqlite

TEXT = "Refunds\nAny order within 30 days.\n\nApproval\nThe team lead approves."


@dataclass
class Platform:
    library: Library
    objects: FakeObjectStore = field(default_factory=FakeObjectStore)
    tally: Tally = field(default_factory=Tally)

    @property
    def stores(self) -> Stores:
        library = self.library
        return Stores(library.db, self.objects, library.vectors, library.keywords)

    async def document(self, document_id: str = "d1", *, generation: int = 1) -> None:
        """Indexed, with everything that belongs to it."""
        await self.library.record(document_id, generation=generation, active=generation)
        children = await self.library.write_chunks(document_id, TEXT, generation=generation)
        await self.library.index(document_id, children, generation=generation)
        await self.library.change(document_id, counts={"chunks": 4, "parents": 2})
        await self.files(document_id, generation)

    async def files(self, document_id: str, generation: int, *, original: bool = True) -> None:
        folder = f"t/{document_id}"
        names = [f"{generation}/text.txt", f"{generation}/document.json"]
        for name in [*names, "original"] if original else names:
            await self.objects.put(f"{folder}/{name}", b"x")

    async def leftover(self, document_id: str, generation: int) -> None:
        """Rows, chunks and files of a generation, whatever the document's row says."""
        children = await self.library.write_chunks(document_id, TEXT, generation=generation)
        await self.library.index(document_id, children, generation=generation)
        await self.files(document_id, generation, original=False)

    async def facts(self, document_id: str, generation: int) -> None:
        """What the graph holds of a generation."""
        entities = [graph.Entity("activity:refund", 0, 7, "rules")]
        async with self.library.db.work() as sql:
            chunk, of = chunk_id(document_id, generation, 0), ("t", document_id, generation)
            await graph.write(sql, *of, {chunk: (entities, [])})

    async def findings(self, *, grace_s: float = 0.0, tenant: str | None = None) -> list[Finding]:
        self.tally = Tally()
        examiner = Examiner(self.stores, grace_s=grace_s, settle_s=0.0, upload_grace_s=grace_s)
        seen = scan(self.stores, examiner, self.tally, tenant=tenant)
        return [finding async for one in seen for finding in one.findings]

    async def repaired(self) -> list[str]:
        repairs = Repairs(self.library.db, self.objects)
        examiner = Examiner(self.stores, grace_s=0.0, settle_s=0.0)
        return [await repairs.repair(one) async for one in scan(self.stores, examiner, self.tally)]


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    async with sqlite(tmp_path) as db:
        yield Platform(await Library(db).open())
