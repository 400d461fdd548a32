"""Fakes that several tests share. Each keeps the shape of the Protocol it stands for."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from libs.documents.model import ParsedDocument
from libs.kernel import NotFoundError, PermanentError, TransientError
from services.ingest.parser.domain.packing import pack_document
from services.ingest.parser.domain.reading import read_document
from services.ingest.parser.ports import Parsed, ParseRequest


class InProcessParser:
    """`DocumentParser` for text files, without a child process."""

    async def parse(self, source: AsyncIterator[bytes], request: ParseRequest) -> Parsed:
        data = b"".join([chunk async for chunk in source])
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            document = read_document(
                Path(file.name), request.name, request.media_type, max_chars=10**6, tika=_no_tika
            )
        return pack_document(document)


def _no_tika(path: Path, max_chars: int) -> ParsedDocument:
    raise PermanentError("unsupported", "this fake reads text only")


class FakeObjectStore:
    """`ObjectStore` in memory; `away` makes every call fail as an unreachable store does."""

    def __init__(self, objects: dict[str, bytes] | None = None, *, block_bytes: int = 64) -> None:
        self.objects = dict(objects or {})
        self.away = False
        self.largest_piece_bytes = 0
        self._block_bytes = block_bytes

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        self._check()
        value = bytearray()
        async for chunk in chunks:
            self.largest_piece_bytes = max(self.largest_piece_bytes, len(chunk))
            value += chunk
        self.objects[key] = bytes(value)
        return len(value)

    async def put(self, key: str, data: bytes) -> None:
        self._check()
        self.objects[key] = data

    async def get(self, key: str) -> bytes:
        self._check()
        if key not in self.objects:
            raise NotFoundError(f"no object {key}")
        return self.objects[key]

    async def link(self, key: str, disposition: str, media_type: str) -> str | None:
        self._check()
        return None

    async def sweep(self) -> int:
        self._check()
        return 0  # nothing is ever unfinished

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        value = await self.get(key)
        for at in range(0, len(value), self._block_bytes):
            yield value[at : at + self._block_bytes]

    async def delete_prefix(self, prefix: str) -> int:
        self._check()
        found = await self.keys(prefix)
        for key in found:
            del self.objects[key]
        return len(found)

    async def keys(self, prefix: str) -> list[str]:
        self._check()
        return sorted(key for key in self.objects if key.startswith(prefix))

    async def pages(self, prefix: str) -> AsyncIterator[list[str]]:
        for key in await self.keys(prefix):
            yield [key]

    def _check(self) -> None:
        if self.away:
            raise TransientError("the object store does not answer")
