"""An event that names another tenant's document or turn changes nothing and shows nothing.

Every consumer of every topic file has a case here; a new one without a case fails the test.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from libs.contracts import (
    ConversationExecutionPlan,
    DocumentChunked,
    DocumentControl,
    DocumentDeleted,
    DocumentIndexed,
    DocumentParsed,
    DocumentUploaded,
    ExecutionMode,
    TurnCompleted,
    TurnControl,
    TurnPlanned,
    TurnReply,
    TurnRequested,
    to_record,
)
from libs.contracts.topics import load_topics
from libs.eventbus import Failure, Subscriptions
from libs.kernel import SluiceError
from libs.service.document_watch import DocumentWatch
from libs.storage.keys import original_key, parsed_key, text_key
from libs.storage.sql import documents, turns
from libs.storage.sql.tables import metadata
from services.chunker import handlers as chunker
from services.executor import handlers as executor
from services.executor.cancellation import RunningTurns
from services.executor.run import Tools
from services.gateway.replies import Replies
from services.indexer import handlers as indexer
from services.indexer.deps import Deps as IndexerDeps
from services.ingest.parser import handlers as parser
from services.memory_compactor.agents import on_completed
from services.orchestrator import handlers as orchestrator
from services.orchestrator.adapters.rules import RulePlanner
from tests.fakes import FakeObjectStore, InProcessParser
from tests.fakes_answering import FakeEvidenceSource, FakeFanOut, FakeLeases, refund_evidence
from tests.library import Library
from tests.servers.databases import sqlite

pytestmark = pytest.mark.integration

OWNER, INTRUDER, ID = "t", "intruder", "d"
OF = (OWNER, ID, 1)
TEXT = "the owner's own words"
PLAN = ConversationExecutionPlan(ExecutionMode.RAG_CHAT, "What is the refund limit?")
_OF_PROCESSES = {"leases", "workers"}  # they say who works, not what was done


@dataclass
class World:
    """One document and one turn of the owner, and every store they are in."""

    library: Library
    objects: FakeObjectStore
    fan_out: FakeFanOut = field(default_factory=FakeFanOut)
    turn: dict[str, Any] = field(default_factory=dict)

    async def document(self, state: str) -> None:
        await self.library.record(ID, state=state, active=None)
        children = await self.library.write_chunks(ID, TEXT)
        await self.library.index(ID, children)
        for key, content in (
            (original_key(OWNER, ID), TEXT.encode()),
            (text_key(*OF), TEXT.encode()),
            (parsed_key(*OF), b'{"blocks": []}'),
        ):
            self.objects.objects[key] = content

    async def ask(self, *, planned: bool = False, done: bool = False) -> None:
        async with self.library.db.work() as sql:
            conversation_id = await turns.create_conversation(sql, OWNER, memory="summary")
            turn = await turns.create_turn(sql, OWNER, conversation_id, TEXT, 3)
            if planned:
                await turns.set_plan(sql, OWNER, turn["id"], PLAN)
            if done:
                await turns.finish(sql, OWNER, turn["id"], turns.Outcome("done", answer=TEXT))
        self.turn = {"conversation_id": conversation_id, "turn_id": turn["id"]}

    async def everything(self) -> dict[str, Any]:
        """All there is, in every store and on its way to clients."""
        found: dict[str, Any] = {}
        async with self.library.db.reading() as sql:
            for table in metadata.sorted_tables:
                if table.name not in _OF_PROCESSES:
                    found[table.name] = [dict(row) for row in await sql.rows(select(table))]
        found["objects"] = dict(self.objects.objects)
        for name in ("vectors", "keywords"):
            rows = getattr(self.library, name).rows
            found[name] = {index: sorted(kept) for index, kept in rows.items()}
        found["replies"] = list(self.fan_out.records)
        return found


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with sqlite(tmp_path) as db:
        library = await Library(db).open()
        yield World(library, FakeObjectStore())


Case = Callable[[World], Awaitable[tuple[Any, Subscriptions]]]
CASES: dict[tuple[str, str], Case] = {}


def case(event: type[Any], consumer: str) -> Callable[[Case], Case]:
    def register(made: Case) -> Case:
        CASES[event.__name__, consumer] = made
        return made

    return register


@case(DocumentUploaded, "parser")
async def uploaded(world: World) -> tuple[Any, Subscriptions]:
    await world.document("uploaded")
    deps = parser.Deps(world.library.db, world.objects, InProcessParser())
    event = DocumentUploaded(*OF, "d.txt", "text/plain", original_key(OWNER, ID), len(TEXT))
    return event, parser.subscriptions(deps)


@case(DocumentParsed, "chunker")
async def parsed(world: World) -> tuple[Any, Subscriptions]:
    await world.document("parsed")
    event = DocumentParsed(*OF, parsed_key(*OF), text_key(*OF), len(TEXT))
    return event, chunker.subscriptions(chunker.Deps(world.library.db, world.objects))


def _deps(world: World) -> IndexerDeps:
    library = world.library
    return IndexerDeps(
        library.db, world.objects, library.embedder, library.vectors, library.keywords
    )


def _indexer(world: World) -> Subscriptions:
    return indexer.subscriptions(_deps(world))


@case(DocumentChunked, "indexer")
async def chunked(world: World) -> tuple[Any, Subscriptions]:
    await world.document("chunked")
    return DocumentChunked(*OF, 1, 1), _indexer(world)


@case(DocumentIndexed, "indexer")
async def indexed(world: World) -> tuple[Any, Subscriptions]:
    await world.document("chunked")
    async with world.library.db.work() as sql:
        await documents.activate(sql, *OF)
    return DocumentIndexed(*OF, 1), indexer.enrichment(_deps(world))


@case(DocumentDeleted, "indexer")
async def deleted(world: World) -> tuple[Any, Subscriptions]:
    await world.document("deleted")
    return DocumentDeleted(OWNER, ID), _indexer(world)


@case(TurnRequested, "orchestrator")
async def requested(world: World) -> tuple[Any, Subscriptions]:
    await world.ask()
    deps = orchestrator.Deps(world.library.db, RulePlanner(), world.fan_out)
    return TurnRequested(OWNER, **world.turn, reply_partition=3), orchestrator.subscriptions(deps)


@case(TurnPlanned, "executor")
async def planned(world: World) -> tuple[Any, Subscriptions]:
    await world.ask(planned=True)
    deps = executor.Deps(
        world.library.db,
        FakeLeases(),
        RunningTurns(world.library.db),
        world.fan_out,
        Tools(FakeEvidenceSource(refund_evidence()), None),
    )
    event = TurnPlanned(OWNER, **world.turn, reply_partition=3, plan=PLAN)
    return event, executor.subscriptions(deps)


@case(TurnCompleted, "memory_compactor")
async def completed(world: World) -> tuple[Any, Subscriptions]:
    await world.ask(planned=True, done=True)

    async def fold(event: TurnCompleted) -> None:
        await on_completed(to_record(event).value, world.library.db)

    event = TurnCompleted(OWNER, **world.turn, state="done")
    return event, Subscriptions().on(TurnCompleted, fold)


def test_every_consumer_has_a_case() -> None:
    consumers = {(t.event, c) for t in load_topics().values() for c in t.consumers}
    broadcasts = {(event, consumer) for event, consumer in consumers if consumer == "*"}
    assert consumers - broadcasts == set(CASES)
    assert {event for event, _ in broadcasts} == {"DocumentControl", "TurnControl", "TurnReply"}


ALL = pytest.mark.parametrize("case", CASES.values(), ids=["-".join(key) for key in CASES])


@ALL
async def test_the_owners_event_is_worked_on(world: World, case: Case) -> None:
    event, subscriptions = await case(world)
    before = await world.everything()
    for subscription in subscriptions:
        if isinstance(event, subscription.event_type):
            with suppress(SluiceError):
                await subscription.handle(event)
            if subscription.failed is not None:
                await subscription.failed(event, Failure("odd", "It is odd.", 1, permanent=True))
    assert await world.everything() != before


@ALL
async def test_another_tenants_event_is_not(world: World, case: Case) -> None:
    event, subscriptions = await case(world)
    foreign = replace(event, tenant=INTRUDER)
    before = await world.everything()
    for subscription in subscriptions:
        if isinstance(event, subscription.event_type):
            with suppress(SluiceError):
                await subscription.handle(foreign)
            if subscription.failed is not None:
                with suppress(SluiceError):
                    failure = Failure("odd", "It is odd.", 1, permanent=True)
                    await subscription.failed(foreign, failure)
    assert await world.everything() == before


async def test_another_tenants_control_stops_no_turn(world: World) -> None:
    await world.ask(planned=True)
    turn_id = world.turn["turn_id"]
    running = RunningTurns(world.library.db, poll_interval_s=60)
    async with running.running(OWNER, turn_id) as stop:
        await running.on_control(TurnControl(INTRUDER, turn_id, "cancel"))
        stop.check()
        async with world.library.db.work() as sql:
            await turns.cancel(sql, OWNER, turn_id)
        await running.on_control(TurnControl(OWNER, turn_id, "cancel"))
        await asyncio.wait_for(stop.wait(), 60)


async def test_another_tenants_control_ends_no_work_on_a_document() -> None:
    watch, go_on = DocumentWatch(check_s=60), asyncio.Event()

    async def work() -> str:
        await go_on.wait()
        return "done"

    async def is_due() -> bool:  # what SQL says of the owner's document
        return True

    working = asyncio.create_task(watch.while_due(ID, work(), is_due))
    await asyncio.sleep(0)
    await watch.on_control(DocumentControl(INTRUDER, ID, "cancel"))
    go_on.set()
    assert await asyncio.wait_for(working, 60) == "done"


async def test_another_tenants_reply_reaches_no_stream(world: World) -> None:
    await world.ask(planned=True)
    turn_id = world.turn["turn_id"]
    replies = Replies(world.library.db)
    stream = replies.follow(OWNER, turn_id, 1)
    coming = asyncio.ensure_future(anext(stream))
    while not replies.open_streams:  # noqa: ASYNC110 - it opens with its first step
        await asyncio.sleep(0)
    await replies.hear(TurnReply(INTRUDER, turn_id, 2, "delta", '{"text": "not yours"}'))
    await replies.hear(TurnReply(OWNER, turn_id, 2, "delta", '{"text": "yours"}'))
    heard = await asyncio.wait_for(coming, 60)
    assert heard is not None
    assert heard.data == {"text": "yours"}
    await stream.aclose()
