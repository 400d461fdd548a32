"""What a chunk plan would make of a document, without changing anything."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from libs.chunking.cutting import Cut, cut
from libs.chunking.profile import profile_of
from libs.documents.model import ParsedDocument
from libs.kernel import ConflictError, NotFoundError
from libs.service.recutting import load_parse, newest_parse
from libs.storage.sql import documents
from services.ingest.api.deps import Ingest

MAX_CHARS = 200_000  # of a document, from its beginning
UNKNOWN_GENERATION = 0  # what is only looked at belongs to none


@dataclass(frozen=True, slots=True)
class Preview:
    generation: int  # whose stored parse was cut
    char_count: int  # how much of it
    is_complete: bool
    cut: Cut


async def preview(
    ingest: Ingest, tenant: str, document_id: str, requested: Mapping[str, Any]
) -> Preview:
    """Cut the newest stored parse as a plan would, one document at a time.

    Of a long document only the beginning is cut, by what is recommended for the whole.

    Raises: NotFoundError; ConflictError: nothing is parsed; PermanentError `bad-plan`,
    `damaged-parse`; TransientError.
    """
    async with ingest.db.reading() as sql:
        row = await documents.load(sql, tenant, document_id)
    generation = await newest_parse(ingest.objects, row)
    nothing = f"the document is {row['state']}: it has no parsed text that could be cut"
    if generation is None:
        raise ConflictError(nothing)
    of = (tenant, document_id, generation)
    async with ingest.previews:
        try:
            document = await load_parse(ingest.objects, of)
        except NotFoundError as exc:  # a newer generation has removed it in between
            raise ConflictError(nothing) from exc
        shown = beginning(document, MAX_CHARS)
        made = await cut(
            shown,
            requested,
            ingest.helpers,
            tenant=tenant,
            document_id=document_id,
            generation=UNKNOWN_GENERATION,
            profile=await asyncio.to_thread(profile_of, document),
        )
    is_complete = len(shown.text) == len(document.text)
    return Preview(generation, len(shown.text), is_complete, made)


def beginning(document: ParsedDocument, max_chars: int) -> ParsedDocument:
    """The document's first `max_chars` characters, up to the end of a block where there is one.

    A block that would leave less than half of them, such as a large table, is cut.
    """
    if len(document.text) <= max_chars:
        return document
    end = max((b.end for b in document.blocks if b.end <= max_chars), default=0)
    if end < max_chars // 2:
        end = max_chars
    blocks = [replace(b, end=min(b.end, end)) for b in document.blocks if b.start < end]
    return replace(document, text=document.text[:end], blocks=blocks)
