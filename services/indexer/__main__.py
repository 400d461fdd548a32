"""The indexer: chunk sets into the vector and keyword indexes, deletions out of every store."""

import asyncio

import structlog

from libs.contracts import DocumentControl
from libs.eventbus import FlowPolicy, Policies
from libs.kernel import TransientError, now_us, set_within
from libs.service.chat import open_chat
from libs.service.objects import open_objects
from libs.service.process import Platform, open_platform
from libs.service.process import run as run_process
from libs.service.regularly import regularly
from libs.service.search import SearchStack, open_search
from libs.storage.sql.active_index import ActiveIndex
from services.indexer.catching_up import LANE, DueGraphs, adopt_all
from services.indexer.deps import Deps
from services.indexer.handlers import enrichment, subscriptions
from services.indexer.rebuilding import Rebuilder
from services.indexer.settings import IndexerSettings
from services.indexer.stale_rows import sweep
from services.indexer.startup import prepare

log = structlog.get_logger(__name__)

RETRY_S = 1.0
# A few documents keep every embedding process busy; more would only make each of them slower.
FLOW = FlowPolicy(max_in_flight=8)
# The graph comes second to whatever makes documents searchable.
ENRICHMENT_FLOW = FlowPolicy(max_in_flight=2)


async def main(settings: IndexerSettings) -> None:
    async with (
        open_platform(settings, "indexer") as platform,
        open_search(settings, writes=True, embed_workers=settings.embed_workers or None) as search,
        open_chat(settings, platform.db) as chat,
        open_objects(settings, platform.health.reporter("objects")) as objects,
    ):
        if await _prepared(platform, search) is None:
            return
        deps = Deps(
            db=platform.db,
            objects=objects,
            embedder=search.embedder,
            vectors=search.vectors,
            keywords=search.keywords,
            chat=chat if settings.graph_model_calls else None,
            chat_calls=settings.graph_model_calls,
        )
        age_us = int(settings.stale_age_s * 1e6)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(platform.listen(DocumentControl, deps.watch.on_control))
            tasks.create_task(
                platform.consume(
                    subscriptions(deps),
                    group_id="indexer",
                    lanes=("", "urgent"),
                    policies=Policies(flow=FLOW),
                )
            )
            # A member of its own in the same group: a backlog or failures here delay no indexing.
            tasks.create_task(
                platform.consume(
                    enrichment(deps),
                    group_id="indexer",
                    lanes=("", LANE),
                    policies=Policies(flow=ENRICHMENT_FLOW),
                )
            )
            tasks.create_task(platform.reconcile(DueGraphs()))
            rebuilder = Rebuilder(
                deps,
                flush=search.vectors.flush,
                report=platform.health.reporter("embedding model"),
            )
            tasks.create_task(rebuilder.run(platform.stopping))

            async def sweep_all() -> None:
                await rebuilder.sweep()
                await sweep(deps, failed_before_us=now_us() - age_us)

            tasks.create_task(
                regularly(
                    sweep_all,
                    "stale rows",
                    interval_s=settings.stale_sweep_s,
                    stop=platform.stopping,
                )
            )


async def _prepared(platform: Platform, search: SearchStack) -> ActiveIndex | None:
    """The probed index, as soon as the stores are there; None: told to stop before."""
    report = platform.health.reporter("search index")
    report("search index")
    while await platform.connected():
        try:
            active = await prepare(platform.db, search.embedder, search.vectors, search.keywords)
            if active.embedding_model == search.embedder.name:
                await search.vectors.flush(active.vector_collection)
            await adopt_all(platform.db)
        except TransientError as exc:
            report(exc.missing or "search index")
            log.warning("search_index_awaited", reason=str(exc))
            await set_within(platform.stopping, RETRY_S)
        else:
            report(None)
            return active
    return None


def run() -> None:
    settings = IndexerSettings()
    run_process(lambda: main(settings), "indexer", log_level=settings.log_level)


if __name__ == "__main__":
    run()
