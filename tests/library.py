"""A searchable library for tests: documents cut into chunks, in SQL and in both indexes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import insert, update

from libs.contracts import DocumentChunked
from libs.documents.analysis import analyse
from libs.documents.model import Chunk
from libs.kernel import chunk_id, now_us
from libs.models.ports import Embedder
from libs.storage.ports import IndexRow, KeywordIndex, VectorIndex
from libs.storage.sql import Database, chunks
from libs.storage.sql.active_index import ActiveIndex, read_or_make
from libs.storage.sql.tables import documents
from tests.fakes_search import FakeEmbedder, FakeKeywords, FakeVectors

ACTIVE = ActiveIndex("fake-words", "vectors", "keywords")


def cut(text: str, document_id: str, generation: int) -> tuple[list[Chunk], list[Chunk]]:
    """Parents between blank lines, a child per line; offsets as everywhere."""
    parents: list[Chunk] = []
    children: list[Chunk] = []
    at = 0
    for block in text.split("\n\n"):
        parent = chunk_id(document_id, generation, len(parents), parent=True)
        end = at + len(block)
        parents.append(Chunk(parent, len(parents), block, at, end, None, (), None))
        for line in block.split("\n"):
            child, ordinal = chunk_id(document_id, generation, len(children)), len(children)
            end = at + len(line)
            children.append(Chunk(child, ordinal, line, at, end, None, (), parent))
            at += len(line) + 1
        at += 1
    return parents, children


@dataclass
class Library:
    db: Database
    embedder: Embedder = field(default_factory=FakeEmbedder)
    vectors: VectorIndex = field(default_factory=FakeVectors)
    keywords: KeywordIndex = field(default_factory=FakeKeywords)
    active: ActiveIndex = ACTIVE

    async def open(self) -> "Library":
        await read_or_make(self.db, self.active, analyser=1)
        await self.vectors.ensure(self.active.vector_collection)
        await self.keywords.ensure(self.active.keyword_index)
        return self

    async def record(
        self,
        document_id: str,
        *,
        tenant: str = "t",
        state: str = "indexed",
        generation: int = 1,
        active: int | None = 1,
        domain: str = "",
        tags: Sequence[str] = (),
    ) -> None:
        """A document's row as the pipeline would have left it."""
        now = now_us()
        async with self.db.work() as sql:
            await sql.execute(
                insert(documents).values(
                    id=document_id,
                    tenant=tenant,
                    name=f"{document_id}.txt",
                    media_type="text/plain",
                    size_bytes=1,
                    sha256="0" * 64,
                    object_key=f"{tenant}/{document_id}/original",
                    domain=domain,
                    tags=list(tags),
                    priority="normal",
                    state=state,
                    generation=generation,
                    active_generation=active,
                    counts={},
                    created_at=now,
                    updated_at=now,
                )
            )

    async def change(self, document_id: str, **values: object) -> None:
        async with self.db.work() as sql:
            await sql.execute(
                update(documents).where(documents.c.id == document_id).values(**values)
            )

    async def write_chunks(
        self, document_id: str, text: str, *, tenant: str = "t", generation: int = 1
    ) -> Sequence[Chunk]:
        parents, children = cut(text, document_id, generation)
        async with self.db.work() as sql:
            await chunks.add(sql, tenant, document_id, generation, [*parents, *children])
        return children

    async def chunked(self, document_id: str, text: str, *, generation: int = 1) -> DocumentChunked:
        """A document, or a later generation of it, that is cut and not searchable; its event."""
        if generation == 1:
            await self.record(document_id, state="chunked", active=None)
        else:
            await self.change(document_id, state="chunked", generation=generation)
        children = await self.write_chunks(document_id, text, generation=generation)
        return DocumentChunked("t", document_id, generation, 1, len(children))

    async def index(
        self,
        document_id: str,
        children: Sequence[Chunk],
        *,
        tenant: str = "t",
        generation: int = 1,
        domain: str = "",
    ) -> None:
        vectors = await self.embedder.embed_passages([child.text for child in children])
        rows = [
            IndexRow(
                child.chunk_id, tenant, document_id, generation, domain, vector, analyse(child.text)
            )
            for child, vector in zip(children, vectors, strict=True)
        ]
        await self.vectors.upsert(self.active.vector_collection, rows)
        await self.keywords.upsert(self.active.keyword_index, rows)

    async def add(
        self,
        document_id: str,
        text: str,
        *,
        tenant: str = "t",
        domain: str = "",
        tags: Sequence[str] = (),
    ) -> None:
        """A whole, visible document."""
        await self.record(document_id, tenant=tenant, domain=domain, tags=tags)
        children = await self.write_chunks(document_id, text, tenant=tenant)
        await self.index(document_id, children, tenant=tenant, domain=domain)
