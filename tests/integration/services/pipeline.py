"""The document pipeline on the real broker and database, in one process.

Each service is a platform of its own with the real handlers, as its `main` puts them together.
Stores and models are in memory, so that a test can hold, fail and count every step: a file's name
says what becomes of it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import RowMapping, select

from libs.eventbus import FlowPolicy, KafkaConnection, Policies, RetryPolicy, Subscriptions
from libs.eventbus.preparation import prepare_broker
from libs.kernel import new_id
from libs.observability import tracing
from libs.service.process import Platform, open_platform
from libs.service.settings import PlatformSettings
from libs.service.unfinished import DELETIONS, PIPELINE
from libs.storage.keys import original_key
from libs.storage.sql import Database, open_database
from libs.storage.sql.active_index import read_or_make
from libs.storage.sql.tables import documents
from libs.storage.sql.uploads import StoredFile, take_in
from services.chunker import handlers as chunker
from services.indexer import handlers as indexer
from services.indexer.deps import Deps as IndexerDeps
from services.ingest.parser import handlers as parser
from services.ingest.parser.ports import Parsed, ParseRequest
from tests.fakes import FakeObjectStore, InProcessParser
from tests.fakes_search import FakeEmbedder, FakeKeywords, FakeVectors
from tests.library import ACTIVE
from tests.servers.brokers import AnyBroker, is_embedded
from tests.waiting import until

TENANT = "acme"
SERVICES = ("ingest", "parser", "chunker", "indexer")
QUICK = Policies(
    retry=RetryPolicy(max_attempts=3, max_bug_attempts=2, base_delay_s=0.05),
    flow=FlowPolicy(max_in_flight=8),
)


@dataclass
class Fates:
    """What becomes of files, by the word that their names begin with; others just pass."""

    held: dict[str, asyncio.Event] = field(default_factory=dict)  # until it is set
    errors: dict[str, Exception] = field(default_factory=dict)  # every time
    once: dict[str, Exception] = field(default_factory=dict)  # each file's first time only
    met: Counter[str] = field(default_factory=Counter)  # tries, by name

    async def meet(self, name: str) -> None:
        kind = name.split("-")[0]
        self.met[name] += 1
        if kind in self.held:
            await self.held[kind].wait()
        if kind in self.errors:
            raise self.errors[kind]
        if kind in self.once and self.met[name] == 1:
            raise self.once[kind]


class FatefulParser(InProcessParser):
    def __init__(self) -> None:
        self.fates = Fates()

    async def parse(self, source: AsyncIterator[bytes], request: ParseRequest) -> Parsed:
        await self.fates.meet(request.name)
        return await super().parse(source, request)


class FatefulEmbedder(FakeEmbedder):
    """A document's text begins with its name."""

    def __init__(self) -> None:
        self.fates = Fates()

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await self.fates.meet(texts[0].split()[0])
        return await super().embed_passages(texts)


class Pipeline:
    def __init__(self, settings: PlatformSettings, broker: AnyBroker) -> None:
        self.settings = settings
        self.broker = broker
        self.db = open_database(settings.sql_url)  # to look into SQL; relays nothing
        self.policies = QUICK
        self.objects = FakeObjectStore()
        self.vectors, self.keywords = FakeVectors(), FakeKeywords()
        self.parser, self.embedder = FatefulParser(), FatefulEmbedder()
        self.platforms: dict[str, Platform] = {}
        self.traces: dict[str, str] = {}  # by document: the trace it was uploaded in
        self._running: dict[str, asyncio.Task[None]] = {}

    async def open(self) -> None:
        await self.db.create_schema()
        await read_or_make(self.db, ACTIVE, analyser=1)
        await self.vectors.ensure(ACTIVE.vector_collection)
        await self.keywords.ensure(ACTIVE.keyword_index)
        embedded = is_embedded(self.broker)
        await prepare_broker(KafkaConnection(self.broker.bootstrap), self.db, embedded=embedded)

    async def start(self, *services: str) -> None:
        """Services by name; `indexer 2` is one more replica of the indexer."""
        for name in services or SERVICES:
            self._running[name] = asyncio.create_task(self._serve(name))
        await until(lambda: set(services or SERVICES) <= set(self.platforms), within_s=60)
        for name in services or SERVICES:
            await until(lambda health=self.platforms[name].health: health.ready, within_s=60)

    async def kill(self) -> None:
        """End everything at once: nothing is drained, sent or committed any more."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        self._running.clear()
        self.platforms.clear()

    async def upload(
        self, *names: str, priority: str = "normal", content: str | None = None
    ) -> list[str]:
        """Files whose content is their name unless given; returns the ids of their documents."""
        ids = []
        async with self.platforms["ingest"].db.work() as sql:
            for name in names:
                trace = tracing.new()
                tracing.enter_header(tracing.to_header(trace).encode())
                document_id, text = new_id(), content or f"{name} says that all is well."
                await self.objects.put(original_key(TENANT, document_id), text.encode())
                file = StoredFile(
                    document_id, name, "text/plain", len(text), text[:64], priority=priority
                )
                row, _ = await take_in(sql, TENANT, file)
                self.traces.setdefault(row["id"], trace.trace_id)
                ids.append(str(row["id"]))
        return ids

    async def rows(self) -> dict[str, RowMapping]:
        async with self.db.reading() as sql:
            return {row["id"]: row for row in await sql.rows(select(documents))}

    async def states(self) -> Counter[str]:
        return Counter(row["state"] for row in (await self.rows()).values())

    async def until_states(self, within_s: float = 60.0, **wanted: int) -> None:
        async def reached() -> bool:
            states = await self.states()
            return all(states[state] == count for state, count in wanted.items())

        try:
            await until(reached, within_s=within_s)
        except TimeoutError:
            raise AssertionError(f"{await self.states()} instead of {wanted}") from None

    async def end(self, *services: str) -> None:
        """Let these finish what they are at, and leave; others go on."""
        for name in services:
            self.platforms.pop(name).stopping.set()
        await asyncio.gather(*map(self._running.pop, services))

    async def _serve(self, replica: str) -> None:
        name = replica.split()[0]
        async with open_platform(self.settings, name) as platform:
            self.platforms[replica] = platform
            if name == "ingest":
                await platform.reconcile(PIPELINE, DELETIONS)
                return
            await platform.consume(
                self._subscriptions(name, platform.db),
                group_id=name,
                lanes=("", "urgent"),
                policies=self.policies,
            )

    def _subscriptions(self, name: str, db: Database) -> Subscriptions:
        match name:
            case "parser":
                return parser.subscriptions(parser.Deps(db, self.objects, self.parser))
            case "chunker":
                return chunker.subscriptions(chunker.Deps(db, self.objects))
        deps = IndexerDeps(db, self.objects, self.embedder, self.vectors, self.keywords)
        return indexer.subscriptions(deps)


@asynccontextmanager
async def pipeline(settings: PlatformSettings, broker: AnyBroker) -> AsyncIterator[Pipeline]:
    """A pipeline of which nothing runs yet."""
    made = Pipeline(settings, broker)
    await made.open()
    try:
        yield made
    finally:
        await made.kill()
        await made.db.close()
