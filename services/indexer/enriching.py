"""The graph of a document, batch by batch, once it is searchable."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog
from sqlalchemy import RowMapping

from libs.contracts import DocumentIndexed
from libs.documents.graph import Extraction, extract
from libs.documents.model import Chunk
from libs.eventbus.subscriptions import Failure
from libs.storage.sql import chunks, enrichments, graph
from services.indexer.deps import Deps
from services.indexer.domain import Rank, batches
from services.indexer.model_facts import by_model

log = structlog.get_logger(__name__)

BATCH = 64
MODEL_BATCH = 4  # calls that a crash may cost once more
RULES = "rules"

Found = tuple[list[graph.Entity], list[graph.Fact]]


async def enrich(event: DocumentIndexed, deps: Deps) -> None:
    """Bring what the rules (and the model, when there is one) find into the graph.

    Every batch is one unit of work that also says how far it came: whoever goes on after a crash
    begins with the next one, and what is no longer the active generation writes nothing.
    """
    of = (event.tenant, event.document_id)
    async with deps.db.reading() as sql:
        seen = await enrichments.find(sql, *of)
        if not _is_due(seen, event):
            return
        children = await chunks.children(sql, *of, event.generation)
    assert seen is not None  # noqa: S101 - it is due
    rest = [chunk for chunk in children if chunk.ordinal >= seen["next_ordinal"]]
    for batch in batches(rest, BATCH if deps.chat is None else MODEL_BATCH):
        await deps.precedence.turn(Rank.BACKGROUND)
        found = await asyncio.to_thread(by_rules, batch)
        calls = await _add_by_model(found, batch, seen, deps)
        async with deps.db.work() as sql:
            upto = batch[-1].ordinal + 1
            if not await enrichments.advance(sql, seen, next_ordinal=upto, model_calls=calls):
                return
            await graph.write(sql, *of, event.generation, found)
            now = await enrichments.find(sql, *of)
        assert now is not None  # noqa: S101 - just written
        seen = now
    async with deps.db.work() as sql:
        await enrichments.finish(sql, seen)


async def give_up(event: DocumentIndexed, failure: Failure, deps: Deps) -> None:
    """The document stays as searchable as it was; its row says why there is no more."""
    async with deps.db.work() as sql:
        detail = f"{failure.reason}: {failure.detail}"
        of = (event.tenant, event.document_id, event.generation)
        if await enrichments.fail(sql, *of, detail):
            log.warning("enrichment_failed", document_id=event.document_id, detail=detail)


async def _add_by_model(
    found: dict[str, Found], batch: Sequence[Chunk], seen: RowMapping, deps: Deps
) -> int:
    """As long as the document's budget lasts; returns how many calls were made."""
    if deps.chat is None:
        return 0
    asked = batch[: max(0, deps.chat_calls - seen["model_calls"])]
    for chunk in asked:
        entities, facts = found[chunk.chunk_id]
        known = {entity.name for entity in entities}
        more, further = await by_model(deps.chat, chunk, seen["tenant"])
        entities += [entity for entity in more if entity.name not in known]
        facts += further
    return len(asked)


def by_rules(batch: Sequence[Chunk]) -> dict[str, Found]:
    """What the rules find in each chunk, by its id."""
    return {
        chunk.chunk_id: _facts(chunk, extract(chunk.text, headings=chunk.heading_path))
        for chunk in batch
    }


def _facts(chunk: Chunk, found: Extraction) -> Found:
    at = chunk.start
    entities = {
        name.id: graph.Entity(name.id, at + name.start, at + name.end, RULES)
        for name in reversed(found.names)
    }
    facts = [
        graph.Fact(
            relation.verb,
            relation.subjects,
            relation.objects,
            [replace(c, start=at + c.start, end=at + c.end) for c in relation.conditions],
            at + relation.start,
            at + relation.end,
            RULES,
        )
        for relation in found.relations
    ]
    return list(entities.values()), facts


def _is_due(seen: RowMapping | None, event: DocumentIndexed) -> bool:
    return (
        seen is not None
        and seen["generation"] == event.generation
        and seen["state"] == enrichments.DUE
    )
