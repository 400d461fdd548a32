"""/v1/documents/{id}: its original, its text, its blocks and its chunks."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from sqlalchemy import RowMapping

from libs.documents.serialise import load_outline
from libs.kernel import ConflictError, NotFoundError
from libs.storage.keys import parsed_key, text_key
from libs.storage.sql import documents, pages
from libs.web import Reader, attachment, problems
from services.ingest.api import views
from services.ingest.api.blocks import BlockPage, block_page
from services.ingest.api.deps import IngestDeps
from services.ingest.api.schemas import ChunkPage

router = APIRouter(prefix="/v1/documents/{document_id}", tags=["documents"])

# A file that somebody uploaded must never run as a page of this origin.
_HARMLESS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-store",
}


@router.get(
    "/file",
    response_class=Response,
    responses={
        200: {"content": {"*/*": {}}, "description": "The file as it came"},
        307: {"description": "Where the file can be had for a minute (S3_PUBLIC_ENDPOINT)"},
    },
)
async def original_file(document_id: str, principal: Reader, ingest: IngestDeps) -> Response:
    """The uploaded file, byte for byte, as an attachment."""
    async with ingest.db.reading() as sql:
        row = await documents.load(sql, principal.tenant, document_id)
    disposition = attachment(row["name"])
    if link := await ingest.objects.link(row["object_key"], disposition, row["media_type"]):
        if not await ingest.objects.keys(row["object_key"]):
            raise NotFoundError("the original is not there any more")
        return RedirectResponse(link, headers={"Cache-Control": "no-store"})
    headers = {
        "Content-Disposition": disposition,
        "Content-Length": str(row["size_bytes"]),
        **_HARMLESS,
    }
    body = await _begun(ingest.objects.stream(row["object_key"]))
    return StreamingResponse(body, media_type=row["media_type"], headers=headers)


@router.get(
    "/text",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {}}, "description": "The parsed text, in UTF-8"},
        **problems(409),
    },
)
async def plain_text(document_id: str, principal: Reader, ingest: IngestDeps) -> Response:
    """The text that every offset counts in, of the generation that search shows.

    Before the first one is searchable: of the newest, as soon as it is parsed.
    """
    async with ingest.db.reading() as sql:
        row = await documents.load(sql, principal.tenant, document_id)
    try:
        body = await _begun(
            ingest.objects.stream(text_key(principal.tenant, document_id, _shown(row)))
        )
    except NotFoundError as exc:
        raise ConflictError(f"the document is {row['state']}: it has no parsed text") from exc
    return StreamingResponse(body, media_type="text/plain; charset=utf-8", headers=_HARMLESS)


@router.get("/blocks", responses=problems(409))
async def blocks(
    document_id: str,
    principal: Reader,
    ingest: IngestDeps,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1)] = -1,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> BlockPage:
    """What the parser read, in order: the headings, paragraphs, tables … that chunks are cut from.

    Their texts are `/text` between `start` and `end`, of the same generation.
    """
    async with ingest.db.reading() as sql:
        row = await documents.load(sql, principal.tenant, document_id)
    generation = _shown(row)
    try:
        stored = await ingest.objects.get(parsed_key(principal.tenant, document_id, generation))
    except NotFoundError as exc:
        raise ConflictError(f"the document is {row['state']}: it has no parsed text") from exc
    outline = await asyncio.to_thread(load_outline, stored, first=after + 1, limit=limit)
    return block_page(outline, generation, after=after)


@router.get("/chunks")
async def chunk_page(
    document_id: str,
    principal: Reader,
    ingest: IngestDeps,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1)] = -1,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    parents: bool = False,
) -> ChunkPage:
    """The chunks that search finds (`parents`: those that answers are made from), in order."""
    async with ingest.db.reading() as sql:
        document = await documents.load(sql, principal.tenant, document_id)
        found = await pages.chunks_page(
            sql,
            principal.tenant,
            document_id,
            _shown(document),
            parents=parents,
            after=after,
            limit=limit + 1,
        )
    items = [views.chunk(row) for row in found[:limit]]
    more = len(found) > limit
    following = items[-1].ordinal if more else None
    return ChunkPage(generation=_shown(document), items=items, next=following)


def _shown(row: RowMapping) -> int:
    """The generation whose contents are shown: what search shows, else the newest."""
    return int(row["active_generation"] or row["generation"])


async def _begun(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same stream with its first block read, so that errors come before the status line."""
    first = await anext(blocks, b"")

    async def all_blocks() -> AsyncIterator[bytes]:
        yield first
        async for block in blocks:
            yield block

    return all_blocks()
