"""Letting a failed or cancelled document go on, from what its stores still hold of it."""

from sqlalchemy import RowMapping

from libs.service.recutting import is_stored
from libs.storage.sql import documents
from services.ingest.api.deps import Ingest


async def resume(ingest: Ingest, tenant: str, document_id: str) -> RowMapping:
    """`documents.resume`, told whether the parse is stored. Returns and raises as that one."""
    async with ingest.db.reading() as sql:
        row = await documents.load(sql, tenant, document_id)
    stored = await is_stored(ingest.objects, (tenant, document_id, row["generation"]))
    async with ingest.db.work() as sql:
        return await documents.resume(sql, tenant, document_id, parse_is_stored=stored)
