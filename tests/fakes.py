"""Fakes that several tests share. Each keeps the shape of the Protocol it stands for."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from libs.documents.model import ParsedDocument
from libs.kernel import PermanentError
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
