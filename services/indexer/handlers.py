"""What the indexer does with a chunk set and with a deletion."""

from functools import partial

import structlog

from libs.contracts import DocumentChunked, DocumentDeleted, DocumentIndexed
from libs.eventbus.subscriptions import Subscriptions
from libs.kernel import TransientError, now_us
from libs.observability.metrics import DOCUMENT_SECONDS
from libs.service.failures import failing
from libs.storage.keys import document_prefix, generation_prefix
from libs.storage.sql import (
    active_index,
    alike,
    chunks,
    documents,
    enrichments,
    graph,
    index_builds,
)
from libs.storage.sql.document_states import DocumentState
from services.indexer.deps import Deps
from services.indexer.domain import Rank
from services.indexer.enriching import enrich, give_up
from services.indexer.likeness import likeness_in
from services.indexer.writing import Standing, Written, drop_rows, standing_of, write

log = structlog.get_logger(__name__)


async def index(event: DocumentChunked, deps: Deps) -> None:
    """Make a generation searchable in one step, then remove the older ones.

    Repeats are harmless: row ids carry the generation, the state is compared and set, and a
    removal finds nothing the second time. Work that no longer matters stops soon and takes back
    what it wrote.
    """
    standing = await standing_of(event, deps)
    if standing is Standing.DUE:
        rank = Rank.of(event.priority)
        with deps.precedence.lane(rank):
            written = await write(event, deps, rank=rank)
            if written is not None:
                await _activate(event, written, deps)
        standing = await standing_of(event, deps)
    if standing is Standing.DONE:
        await _remove_older(event, deps)
    elif standing is Standing.LOST:
        await _take_back(event, deps)
    elif standing is Standing.DUE:  # it failed and was resumed while this one was at work
        raise TransientError("the document was changed while it was being indexed")


async def delete(event: DocumentDeleted, deps: Deps) -> None:
    """Drop what every store holds of a tombstone, then the record itself.

    Repeats are harmless: every step finds nothing the second time. A writer that was still at
    work takes back its own rows when it finds the document gone.
    """
    async with deps.db.reading() as sql:
        row = await documents.find(sql, event.tenant, event.document_id)
    if row is not None and row["state"] != DocumentState.DELETED:
        log.warning("deletion_of_a_living_document_ignored", document_id=event.document_id)
        return
    of = (event.tenant, event.document_id)
    await drop_rows(deps, *of)
    await deps.objects.delete_prefix(document_prefix(*of))
    async with deps.db.work() as sql:
        await chunks.delete_document(sql, *of)
        await enrichments.drop(sql, *of)
        await documents.purge(sql, *of)


def subscriptions(deps: Deps) -> Subscriptions:
    return (
        Subscriptions()
        .on(DocumentChunked, partial(index, deps=deps), failed=failing(deps.db, "index"))
        .on(DocumentDeleted, partial(delete, deps=deps))
    )


def enrichment(deps: Deps) -> Subscriptions:
    """What follows once a document is searchable, read apart: it delays and fails nothing else."""
    return Subscriptions().on(
        DocumentIndexed, partial(enrich, deps=deps), failed=partial(give_up, deps=deps)
    )


async def _activate(event: DocumentChunked, written: Written, deps: Deps) -> None:
    of = (event.tenant, event.document_id)
    likeness = await likeness_in(deps, *of, event.generation)
    async with deps.db.work() as sql:
        sets = await active_index.read_sets(sql, lock=True)
        if sets.active not in written.sets.every:
            raise TransientError("another index became the active one: it is written there, too")
        unchanged = written.row["updated_at"]
        if not await documents.activate(sql, *of, event.generation, unchanged_since=unchanged):
            return
        if sets.building is not None and sets.building == written.sets.building:
            await index_builds.mark(
                sql, sets.building.build_id, event.document_id, event.generation
            )
        await alike.put(sql, *of, event.generation, likeness)
        # In the same step, as only now no newer generation can have chunks of its own yet.
        await chunks.delete_document(sql, *of, keep=[event.generation])
        await sql.emit(DocumentIndexed(*of, event.generation, event.child_count))
        row = await documents.load(sql, *of)
    if event.generation == 1:
        DOCUMENT_SECONDS.observe((now_us() - row["created_at"]) / 1e6)


async def _remove_older(event: DocumentChunked, deps: Deps) -> None:
    of = (event.tenant, event.document_id)
    await drop_rows(deps, *of, generations=range(event.generation))
    for older in range(1, event.generation):
        await deps.objects.delete_prefix(generation_prefix(*of, older))


async def _take_back(event: DocumentChunked, deps: Deps) -> None:
    of = (event.tenant, event.document_id)
    await drop_rows(deps, *of, generations=range(event.generation, event.generation + 1))
    async with deps.db.work() as sql:
        await chunks.clear(sql, *of, event.generation)
        await graph.clear(sql, *of, event.generation)
    log.info("generation_dropped", document_id=event.document_id, generation=event.generation)
