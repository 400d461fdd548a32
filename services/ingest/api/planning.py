"""Cutting a document anew by another chunk plan, without parsing it again."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import RowMapping

from libs.service.recutting import newest_parse, recut
from libs.storage.sql import documents
from libs.storage.sql.document_states import DocumentState
from services.ingest.api.deps import Ingest


async def override(
    ingest: Ingest, tenant: str, document_id: str, plan: Mapping[str, Any]
) -> RowMapping:
    """Use `plan` for the document: a new generation from its newest stored parse.

    A document that waits for its parse, or has none, is (to be) parsed first.

    Returns: the row afterwards. Raises: NotFoundError, ConflictError, TransientError.
    """
    async with ingest.db.reading() as sql:
        row = await documents.load(sql, tenant, document_id)
    if row["state"] == DocumentState.UPLOADED:
        async with ingest.db.work() as sql:
            return await documents.set_plan(sql, tenant, document_id, row["generation"], plan)
    source = await newest_parse(ingest.objects, row)
    if source is not None:
        return await recut(ingest.db, ingest.objects, row, source, plan=plan)
    async with ingest.db.work() as sql:
        return await documents.start_generation(
            sql,
            tenant,
            document_id,
            expect_generation=row["generation"],
            plan=plan,
            why="new plan",
        )
