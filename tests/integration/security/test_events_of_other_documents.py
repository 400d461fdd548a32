"""An event of the right tenant that names what is not its document's reaches nothing of that.

Whoever wrote it, by mistake or on purpose: object keys of others, ids that are paths, another
conversation's id.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from libs.contracts import (
    DocumentDeleted,
    DocumentParsed,
    DocumentUploaded,
    TurnRequested,
)
from libs.documents.model import Block, BlockKind, ParsedDocument
from libs.documents.serialise import dump_document
from libs.eventbus.testing import InMemoryBus
from libs.kernel import PermanentError
from libs.storage.keys import document_prefix, original_key, parsed_key, text_key
from libs.storage.objects import DiskObjectStore
from libs.storage.sql import turns
from services.chunker import handlers as chunker
from services.indexer import handlers as indexer
from services.indexer.deps import Deps as IndexerDeps
from services.ingest.parser import handlers as parser
from services.orchestrator import handlers as orchestrator
from services.orchestrator.domain.planner import Decision
from services.orchestrator.situation import read_situation
from tests.fakes import InProcessParser
from tests.integration.security.test_events_of_other_tenants import (
    ID,
    OF,
    OWNER,
    PLAN,
    TEXT,
    World,
    world,
)

__all__ = ["world"]
pytestmark = pytest.mark.integration

FOREIGN = [
    original_key("rival", "r"),
    original_key(OWNER, "other"),
    f"{OWNER}/{ID}/../../rival/r/original",
    f"../{OWNER}/{ID}/original",
    f"/{OWNER}/{ID}/original",
    f"{OWNER}/{ID}/original\x00",
    "/etc/passwd",
    "",
]
SECRET = b"what the rival does not show"


@pytest.mark.parametrize("key", FOREIGN)
async def test_the_parser_reads_no_file_but_the_documents_own(world: World, key: str) -> None:
    await world.document("uploaded")
    for foreign in FOREIGN:
        world.objects.objects[foreign] = SECRET
    event = DocumentUploaded(*OF, "d.txt", "text/plain", key, len(TEXT))
    deps = parser.Deps(world.library.db, world.objects, InProcessParser())
    bus = InMemoryBus(world.library.db, parser.subscriptions(deps))
    before = await world.everything()
    await bus.deliver(event)
    assert await world.everything() == before
    assert not bus.retries
    await bus.deliver(replace(event, object_key=original_key(OWNER, ID)))
    assert world.objects.objects[text_key(*OF)] == TEXT.encode()
    assert [type(event) for event in bus.published] == [DocumentParsed]


@pytest.mark.parametrize("key", [*FOREIGN, parsed_key(OWNER, ID, 2)])
async def test_the_chunker_reads_no_files_but_the_generations_own(world: World, key: str) -> None:
    await world.document("parsed")
    words = SECRET.decode()
    block = Block(BlockKind.PARAGRAPH, 0, len(words), None, None)
    files = dump_document(ParsedDocument(words, [block], "text/plain"))
    deps = chunker.Deps(world.library.db, world.objects)
    bus = InMemoryBus(world.library.db, chunker.subscriptions(deps))
    own = DocumentParsed(*OF, parsed_key(*OF), text_key(*OF), len(TEXT))
    for event, content in (
        (replace(own, document_key=key), files.document),
        (replace(own, text_key=key), files.text),
    ):
        world.objects.objects[key] = content
        before = await world.everything()
        await bus.deliver(event)
        assert await world.everything() == before
        assert not bus.retries


PATHS = [f"{ID}/1", f"{ID}/1/..", "..", ".", "", f"../{OWNER}/{ID}", f"{ID}/", "/"]


@pytest.mark.parametrize("document_id", PATHS)
async def test_a_deletion_of_a_path_removes_nothing(
    world: World, tmp_path: Path, document_id: str
) -> None:
    await world.document("indexed")
    objects = DiskObjectStore(tmp_path / "objects")
    await objects.put(text_key(*OF), TEXT.encode())
    library = world.library
    deps = IndexerDeps(library.db, objects, library.embedder, library.vectors, library.keywords)
    bus = InMemoryBus(library.db, indexer.subscriptions(deps))
    event = DocumentDeleted(OWNER, document_id)
    await bus.deliver(event)
    assert bus.dead_letters == [(event, "bad-id")]
    assert await objects.get(text_key(*OF)) == TEXT.encode()


@pytest.mark.parametrize("part", PATHS)
def test_no_key_is_built_of_a_path(part: str) -> None:
    for of in ((OWNER, part), (part, ID)):
        for build in (
            document_prefix,
            original_key,
            lambda tenant, document_id: parsed_key(tenant, document_id, 1),
            lambda tenant, document_id: text_key(tenant, document_id, 1),
        ):
            with pytest.raises(PermanentError, match="bad-id"):
                build(*of)


class _AsksBack:
    """A planner whose every decision waits for the user's answer."""

    async def decide(self, situation: Any, *, tenant: str, turn_id: str) -> Decision:
        return Decision(PLAN, pending="Which one?")


async def test_a_plan_asks_back_in_the_turns_own_conversation(world: World) -> None:
    await world.ask()
    mine, db = dict(world.turn), world.library.db
    await world.ask()
    deps = orchestrator.Deps(db, _AsksBack(), world.fan_out)
    foreign = {**mine, "conversation_id": world.turn["conversation_id"]}
    await orchestrator.plan_turn(TurnRequested(OWNER, **foreign, reply_partition=3), deps)
    async with db.reading() as sql:
        for turn, pending in ((mine, "Which one?"), (world.turn, None)):
            row = await turns.load_turn(sql, OWNER, turn["turn_id"])
            assert (await read_situation(sql, row)).pending == pending
