"""The gateway: conversations, search, the documents proxy and the page, over HTTP."""

import asyncio

import httpx

from libs.contracts import TurnReply, to_record
from libs.contracts.topics import topic_of
from libs.eventbus.backlog import KafkaBacklogs
from libs.kernel import TransientError, end_tasks, stable_partition
from libs.service.process import open_platform, serve_http
from libs.service.process import run as run_process
from libs.service.regularly import regularly
from libs.service.search import PROBE_TENANT, SearchStack, open_search
from libs.service.turn_journal import ReplyFanOut
from libs.storage.sql import Database, active_index
from services.gateway.app import create_app
from services.gateway.deps import Gateway
from services.gateway.lag import LagReader, LagWatch
from services.gateway.limits import RateLimit
from services.gateway.patience import LOOK_EVERY_S, Patience
from services.gateway.readiness import Readiness
from services.gateway.recovery import UnfinishedTurns
from services.gateway.replies import Replies
from services.gateway.settings import GatewaySettings
from services.gateway.stuck import StuckReader


async def main(settings: GatewaySettings) -> None:
    async with (
        open_platform(settings, "gateway") as platform,
        open_search(settings) as search,
        ReplyFanOut(platform.publisher) as fan_out,
        _ingest_client(settings) as ingest,
    ):
        replies = Replies(platform.db)
        retriever = search.retriever(platform.db)
        readiness = Readiness(
            platform.db,
            platform.health,
            {
                "milvus": lambda: _reach_vectors(platform.db, search),
                "elasticsearch" if settings.elasticsearch_url else "keywords": (
                    lambda: _reach_keywords(platform.db, search)
                ),
                # Its heartbeat outlives a killed process for some seconds; its port does not.
                "ingest": lambda: _reach(ingest),
            },
        )
        partition = stable_partition(platform.instance_id, topic_of("TurnReply").partitions)

        async def announce(reply: TurnReply, reply_partition: int) -> None:
            await replies.hear(reply)
            fan_out.offer([to_record(reply, partition=reply_partition)])

        backlogs = KafkaBacklogs(settings.kafka)
        gateway = Gateway(
            settings=settings,
            db=platform.db,
            replies=replies,
            reply_partition=partition,
            announce=announce,
            search=retriever,
            ingest=ingest,
            backlogs=backlogs,
            missing=readiness.missing,
            rate=RateLimit(settings.turn_rate),
        )
        patience = Patience(
            platform.db,
            StuckReader(platform.db, backlogs),
            announce,
            give_up_after_s=settings.turn_patience_s,
        )
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(platform.listen(TurnReply, replies.hear, partitions=[partition])),
                tasks.create_task(platform.reconcile(UnfinishedTurns())),
                tasks.create_task(replies.run()),
                tasks.create_task(
                    regularly(
                        patience.look,
                        "waiting turns",
                        interval_s=LOOK_EVERY_S,
                        stop=platform.stopping,
                    )
                ),
                tasks.create_task(LagWatch(LagReader(platform.db, backlogs)).run()),
            ]
            app, port = create_app(gateway), settings.gateway_port
            await serve_http(
                app,
                settings.host,
                port,
                setting="SLUICE_PORT",
                stop=platform.stopping,
                send_timeout_s=settings.send_timeout_s,
            )
            await end_tasks(*background)


async def _reach_vectors(db: Database, search: SearchStack) -> None:
    """They answer. No embedding: readiness is asked often, and must stay cheap."""
    async with db.reading() as sql:
        active = await active_index.read(sql)
    await search.vectors.count(active.vector_collection, PROBE_TENANT)


async def _reach_keywords(db: Database, search: SearchStack) -> None:
    async with db.reading() as sql:
        active = await active_index.read(sql)
    await search.keywords.count(active.keyword_index, PROBE_TENANT)


async def _reach(ingest: httpx.AsyncClient) -> None:
    try:
        await ingest.get("/live")
    except httpx.TransportError as exc:
        raise TransientError("ingest does not answer") from exc


def _ingest_client(settings: GatewaySettings) -> httpx.AsyncClient:
    """Waits long where ingest streams; drops idle connections before ingest does."""
    return httpx.AsyncClient(
        base_url=settings.ingest_base_url,
        timeout=httpx.Timeout(60.0, connect=5.0),
        limits=httpx.Limits(max_connections=None, keepalive_expiry=2.0),
        trust_env=False,
    )


def run() -> None:
    settings = GatewaySettings()
    run_process(lambda: main(settings), "gateway", log_level=settings.log_level)


if __name__ == "__main__":
    run()
