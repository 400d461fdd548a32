"""The whole pipeline in one process, over stores in memory: what tests drive documents through.

Every effect of a handler (a write to a store, a unit of work) can be where it is interrupted: by a
crash, an error, or something else that happens at that very moment.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from libs.contracts import (
    DocumentChunked,
    DocumentDeleted,
    DocumentIndexed,
    DocumentParsed,
    DocumentUploaded,
    Event,
    decode,
)
from libs.eventbus.subscriptions import Failure
from libs.kernel import (
    ConflictError,
    NotFoundError,
    PermanentError,
    TransientError,
    new_id,
    now_us,
)
from libs.service.document_watch import DocumentWatch
from libs.service.failures import failing
from libs.service.unfinished import DELETIONS, PIPELINE
from libs.storage.keys import document_prefix, original_key
from libs.storage.ports import IndexRow
from libs.storage.sql import Database, OutboxRow, UnitOfWork, documents
from libs.storage.sql.active_index import read_or_make
from libs.storage.sql.idempotency import ReusedKeyError
from libs.storage.sql.uploads import Outcome, StoredFile, take_in
from services.chunker import handlers as chunker
from services.indexer import enriching, stale_rows
from services.indexer import handlers as indexer
from services.indexer.catching_up import DueGraphs
from services.indexer.deps import Deps as IndexerDeps
from services.ingest.api import orphans, planning, resuming
from services.ingest.api.deps import Ingest
from services.ingest.parser import handlers as parser
from services.ingest.parser.ports import Parsed, ParseRequest
from tests.fakes import FakeObjectStore, InProcessParser
from tests.fakes_search import FakeEmbedder, FakeIndex, FakeKeywords, FakeVectors
from tests.library import ACTIVE

TENANT = "acme"
STAGES = {DocumentUploaded: "parse", DocumentParsed: "chunk", DocumentChunked: "index"}
NEVER_S = 3600.0

Happening = Callable[[], Awaitable[object]]


class CrashError(BaseException):
    """The process is gone: nothing after this line ran."""


class Effects:
    """Counts the effects of what runs; at a chosen one something happens, once."""

    def __init__(self) -> None:
        self._left = 0
        self._happening: Happening | None = None

    def interrupt(self, at: int, happening: Happening | None) -> None:
        self._left, self._happening = at, happening

    async def one(self) -> None:
        if self._happening is None:
            return
        self._left -= 1
        if self._left < 0:
            happening, self._happening = self._happening, None
            await happening()


class LifeDatabase(Database):
    """A database whose units of work are effects."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.effects = Effects()

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        await self.effects.one()
        async with super().work() as sql:
            yield sql
        await self.effects.one()


class LifeObjects(FakeObjectStore):
    def __init__(self, effects: Effects) -> None:
        super().__init__()
        self._effects = effects

    async def put(self, key: str, data: bytes) -> None:
        await self._effects.one()
        await super().put(key, data)

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        await self._effects.one()
        return await super().write(key, chunks)

    async def delete_prefix(self, prefix: str) -> int:
        await self._effects.one()
        return await super().delete_prefix(prefix)


@dataclass
class _LifeIndex(FakeIndex):
    effects: Effects = field(default_factory=Effects)

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        await self.effects.one()
        await super().upsert(name, rows)

    async def delete(
        self, name: str, tenant: str, document_id: str, *, generations: range | None = None
    ) -> None:
        await self.effects.one()
        await super().delete(name, tenant, document_id, generations=generations)


class LifeVectors(_LifeIndex, FakeVectors):
    pass


class LifeKeywords(_LifeIndex, FakeKeywords):
    pass


class LifeParser(InProcessParser):
    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self.calls = 0

    async def parse(self, source: AsyncIterator[bytes], request: ParseRequest) -> Parsed:
        await self._effects.one()
        self.calls += 1
        return await super().parse(source, request)


class Life:
    """Clients, the pipeline, and the events between them.

    `pending` are the events on their way, `history` all there ever were.
    """

    def __init__(self, db: LifeDatabase) -> None:
        self.effects = db.effects
        self.db = db
        self.objects = LifeObjects(self.effects)
        self.vectors = LifeVectors(effects=self.effects)
        self.keywords = LifeKeywords(effects=self.effects)
        self.pending: list[Event] = []
        self.history: list[Event] = []
        self.ids: list[str] = []
        watch = DocumentWatch(NEVER_S)
        self._ingest = Ingest(db, self.objects, 10**6, 1.0)
        self.parser = LifeParser(self.effects)
        self._parser = parser.Deps(db, self.objects, self.parser, watch)
        self._chunker = chunker.Deps(db, self.objects, watch)
        self.indexer = IndexerDeps(
            db, self.objects, FakeEmbedder(), self.vectors, self.keywords, watch=watch
        )
        db.after_commit = self._relay

    async def open(self) -> None:
        await self.db.create_schema()
        await read_or_make(self.db, ACTIVE, analyser=1)
        await self.vectors.ensure(ACTIVE.vector_collection)
        await self.keywords.ensure(ACTIVE.keyword_index)

    async def upload(self, content: str, key: str | None = None, priority: str = "normal") -> None:
        """As the ingest API does: the file first, then the record."""
        document_id = new_id()
        await self.objects.put(original_key(TENANT, document_id), content.encode())
        sha256, size_bytes = content[:64], len(content)
        file = StoredFile(document_id, "n.txt", "text/plain", size_bytes, sha256, priority=priority)
        outcome = None
        try:
            async with self.db.work() as sql:
                row, outcome = await take_in(sql, TENANT, file, idempotency_key=key)
        except (ConflictError, ReusedKeyError):
            pass
        if outcome is Outcome.CREATED:
            self.ids.append(row["id"])
        else:
            await self.objects.delete_prefix(document_prefix(TENANT, document_id))

    async def ask(self, what: str, document_id: str) -> None:
        """A client's request; a refusal is an answer too."""
        try:
            match what:
                case "resume":
                    await resuming.resume(self._ingest, TENANT, document_id)
                case "fine plan" | "coarse plan":
                    size = 50 if what == "fine plan" else 200
                    plan = {"child_max_chars": size}
                    await planning.override(self._ingest, TENANT, document_id, plan)
                case _:
                    change: Any = {
                        "reparse": documents.start_generation,
                        "cancel": documents.cancel,
                        "delete": documents.tombstone,
                    }[what]
                    async with self.db.work() as sql:
                        await change(sql, TENANT, document_id)
        except (NotFoundError, ConflictError, CrashError, TransientError, PermanentError):
            pass

    async def deliver(self, event: Event, *, give_up: bool = False) -> bool:
        """What a consumer does with an event; False: it is delivered again.

        `give_up`: its tries are used up.
        """
        try:
            await self._handle(event)
        except CrashError:
            return False
        except TransientError:
            if not give_up:
                return False
            await self._failed(event, Failure("retries-exhausted", "", 20, permanent=False))
        except PermanentError as exc:
            await self._failed(event, Failure(exc.reason, exc.detail, 1, permanent=True))
        return True

    async def deliver_pending(self, which: int, *, give_up: bool = False) -> None:
        """One of the events on their way, the newest first; none is put back."""
        if self.pending:
            event = self.pending.pop(-1 - which % len(self.pending))
            if not await self.deliver(event, give_up=give_up):
                self.pending.append(event)

    async def reconcile(self) -> int:
        """Emit again what SQL knows to be unfinished; returns how much that is."""
        async with self.db.reading() as sql:
            works = [
                work
                for source in (PIPELINE, DELETIONS, DueGraphs())
                for _, work in await source.unfinished(sql, "", 100)
            ]
        self.pending += [work.event for work in works if work.event not in self.pending]
        return len(works)

    async def sweep(self, *, failed_before_us: int = 0) -> None:
        """Of everything up to now; no later upload has an id that old."""
        await orphans.sweep(self.db, self.objects, before_us=now_us())
        await asyncio.sleep(0.002)
        await stale_rows.sweep(self.indexer, failed_before_us=failed_before_us)

    async def settle(self, rounds: int = 8) -> None:
        """Deliver everything and reconcile, until nothing is left to do."""
        for _ in range(rounds):
            while self.pending:
                await self.deliver_pending(0)
            if not await self.reconcile():
                return
        raise AssertionError(f"stuck: {self.pending}")

    async def _handle(self, event: Event) -> None:
        match event:
            case DocumentUploaded():
                await parser.parse(event, self._parser)
            case DocumentParsed():
                await chunker.chunk(event, self._chunker)
            case DocumentChunked():
                await indexer.index(event, self.indexer)
            case DocumentIndexed():
                await enriching.enrich(event, self.indexer)
            case DocumentDeleted():
                await indexer.delete(event, self.indexer)

    async def _failed(self, event: Any, failure: Failure) -> None:
        if type(event) in STAGES:
            await failing(self.db, STAGES[type(event)])(event, failure)
        elif isinstance(event, DocumentIndexed):
            await enriching.give_up(event, failure, self.indexer)

    async def _relay(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            event = decode(row.record.value)
            self.history.append(event)
            self.pending.append(event)
