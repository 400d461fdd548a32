"""Graphs that are due and that nobody works on: for the reconciler, which announces them again."""

from collections.abc import Sequence
from functools import partial

import structlog
from sqlalchemy import RowMapping

from libs.contracts import DocumentIndexed
from libs.eventbus.reconciler import Unfinished
from libs.storage.sql import Database, UnitOfWork, enrichments

log = structlog.get_logger(__name__)

LANE = "enrichment"  # old documents do not delay those that were just indexed
_BATCH = 500


class DueGraphs:
    """`WorkSource` over enrichments."""

    kind = "enrichment"

    async def unfinished(
        self, sql: UnitOfWork, after: str, limit: int
    ) -> Sequence[tuple[str, Unfinished]]:
        rows = await enrichments.due(sql, after=after, limit=limit)
        return [(row["document_id"], Unfinished(_event(row), "indexer", LANE)) for row in rows]


def _event(row: RowMapping) -> DocumentIndexed:
    count = (row["active_counts"] or {}).get("chunks", 0)
    return DocumentIndexed(row["tenant"], row["document_id"], row["generation"], count)


async def adopt_all(db: Database) -> int:
    """Documents from before there was a graph, or read by older rules, become due.

    Returns: how many. Raises: TransientError.
    """
    total = 0
    while True:
        adopted = await db.repeated(partial(enrichments.adopt, limit=_BATCH))
        if not adopted:
            break
        total += adopted
    if total:
        log.info("graphs_due", documents=total)
    return total
