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

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects = dict(objects or {})
        self.away = False

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        await self.put(key, b"".join([chunk async for chunk in chunks]))
        return len(self.objects[key])

    async def put(self, key: str, data: bytes) -> None:
        self._check()
        self.objects[key] = data

    async def get(self, key: str) -> bytes:
        self._check()
        if key not in self.objects:
            raise NotFoundError(f"no object {key}")
        return self.objects[key]

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        yield await self.get(key)

    async def delete_prefix(self, prefix: str) -> int:
        self._check()
        gone = [key for key in self.objects if key.startswith(prefix)]
        for key in gone:
            del self.objects[key]
        return len(gone)

    async def keys(self, prefix: str) -> list[str]:
        self._check()
        return sorted(key for key in self.objects if key.startswith(prefix))

    def _check(self) -> None:
        if self.away:
            raise TransientError("the fake object store is away")
