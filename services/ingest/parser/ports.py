"""What the parser's handler needs."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from libs.documents.serialise import DocumentFiles


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """What is known about a file before it is read; name and type are hints from outside."""

    name: str
    media_type: str
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document in its stored forms, with what was counted in it."""

    files: DocumentFiles
    media_type: str  # what the file really is
    char_count: int
    block_count: int
    table_count: int
    row_count: int  # of all tables
    page_count: int | None
    warning_count: int = 0  # what may be missing; the sentences are in the stored document


class DocumentParser(Protocol):
    """Turns files into documents, however hostile they are.

    Cancelling a call stops its work at once.
    Raises: PermanentError with the reason why this file has no searchable text; TransientError
    when the parser itself cannot work now, DiskError where it has no room to.
    """

    async def parse(self, source: AsyncIterator[bytes], request: ParseRequest) -> Parsed: ...
