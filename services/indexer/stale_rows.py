"""Index rows that nothing will ever show: what late writers and lost messages left behind."""

from collections.abc import Collection
from typing import Any

import structlog
from sqlalchemy import RowMapping

from libs.storage.ports import SearchIndex
from libs.storage.sql import pages
from libs.storage.sql.document_states import DocumentState
from services.indexer.deps import Deps

log = structlog.get_logger(__name__)

_BATCH = 200


async def sweep(deps: Deps, *, failed_before_us: int) -> int:
    """Remove stale rows from every index; returns how many generations were removed.

    A generation is stale when its document is gone, and when it is neither what search shows nor
    the newest, or the newest, but cancelled: none of these can ever be shown again. A failed one
    may be resumed from its rows; it is stale when it failed before that time.

    Raises: TransientError.
    """
    async with deps.db.reading() as sql:
        tenants = await pages.tenants(sql)
    removed = 0
    for of in (await deps.sets()).every:
        for index, name in (
            (deps.vectors, of.vector_collection),
            (deps.keywords, of.keyword_index),
        ):
            for tenant in tenants:
                removed += await _sweep(deps, index, name, tenant, failed_before_us)
    if removed:
        log.info("stale_rows_removed", generations=removed)
    return removed


async def _sweep(
    deps: Deps, index: SearchIndex[Any], name: str, tenant: str, failed_before_us: int
) -> int:
    stale: set[tuple[str, int]] = set()
    async for page in index.entries(name, tenant):
        pairs = sorted({(entry.document_id, entry.generation) for entry in page})
        for at in range(0, len(pairs), _BATCH):
            batch = pairs[at : at + _BATCH]
            stale.update(await _stale(deps, tenant, batch, failed_before_us))
    removed = 0
    for pair in sorted(stale):
        # Asked again at the last moment: by now a failed one may have been resumed.
        if await _stale(deps, tenant, [pair], failed_before_us):
            document_id, generation = pair
            of_one = range(generation, generation + 1)
            await index.delete(name, tenant, document_id, generations=of_one)
            removed += 1
    return removed


async def _stale(
    deps: Deps, tenant: str, pairs: Collection[tuple[str, int]], failed_before_us: int
) -> list[tuple[str, int]]:
    async with deps.db.reading() as sql:
        rows = await pages.documents_by_id(sql, tenant, {id_ for id_, _ in pairs})
    return [
        (document_id, generation)
        for document_id, generation in pairs
        if _is_stale(rows.get(document_id), generation, failed_before_us)
    ]


def _is_stale(row: RowMapping | None, generation: int, failed_before_us: int) -> bool:
    if row is None or row["state"] == DocumentState.DELETED:
        return True
    if generation == row["active_generation"]:
        return False
    if generation != row["generation"] or row["state"] == DocumentState.CANCELLED:
        return True
    return bool(row["state"] == DocumentState.FAILED and row["updated_at"] < failed_before_us)
