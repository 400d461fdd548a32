"""What is embedded and indexed of a chunk, and who goes first."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from libs.documents.analysis import analyse
from libs.documents.model import Chunk
from libs.storage.ports import IndexRow, Vector


def searchable_text(chunk: Chunk) -> str:
    """The chunk under its headings: a table or a short answer is found by what it stands under."""
    if not chunk.heading_path:
        return chunk.text
    return f"{' > '.join(chunk.heading_path)}\n{chunk.text}"


def to_row(
    chunk: Chunk, vector: Vector, *, tenant: str, document_id: str, generation: int, domain: str
) -> IndexRow:
    return IndexRow(
        chunk_id=chunk.chunk_id,
        tenant=tenant,
        document_id=document_id,
        generation=generation,
        domain=domain,
        vector=vector,
        terms=analyse(searchable_text(chunk)),
    )


def batches(chunks: Sequence[Chunk], size: int) -> Iterator[Sequence[Chunk]]:
    for at in range(0, len(chunks), size):
        yield chunks[at : at + size]


class Precedence:
    """While urgent work is under way, bulk work waits before its next batch."""

    def __init__(self) -> None:
        self._urgent = 0
        self._free = asyncio.Event()
        self._free.set()

    @contextmanager
    def lane(self, *, urgent: bool) -> Iterator[None]:
        """Around the whole of one document's work."""
        self._urgent += urgent
        self._mark()
        try:
            yield
        finally:
            self._urgent -= urgent
            self._mark()

    async def turn(self, *, urgent: bool) -> None:
        """Wait for one's turn for a batch."""
        if not urgent:
            await self._free.wait()

    def _mark(self) -> None:
        if self._urgent:
            self._free.clear()
        else:
            self._free.set()
