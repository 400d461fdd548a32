"""A file becomes a parsed document, is chunked, and every way to fail has its reason."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import RowMapping, select

from libs.contracts import DocumentChunked, DocumentParsed, DocumentUploaded, Event, decode
from libs.eventbus.subscriptions import Failure
from libs.kernel import PermanentError, new_id
from libs.service.document_watch import DocumentWatch
from libs.service.failures import failing
from libs.storage.keys import original_key, text_key
from libs.storage.objects import DiskObjectStore
from libs.storage.sql import Database, UnitOfWork, chunks, documents
from libs.storage.sql.tables import documents as document_rows
from libs.storage.sql.tables import outbox
from libs.storage.sql.uploads import StoredFile, take_in
from services.chunker import handlers as chunker
from services.ingest.parser import handlers as parser
from services.ingest.parser.ports import DocumentParser, Parsed, ParseRequest
from tests.fakes import FakeObjectStore, InProcessParser

TENANT = "acme"
Change = Callable[[UnitOfWork, str, str], Awaitable[object]]
HANDBOOK = (
    "# 手册\n\n## 年休假\n\n员工每年有五天年休假。\n\n| 年限 | 天数 |\n|---|---|\n| 1 年 | 5 天 |\n"
)


@dataclass
class Pipeline:
    db: Database
    objects: DiskObjectStore

    async def upload(
        self, data: bytes, name: str = "handbook.md", priority: str = "normal"
    ) -> DocumentUploaded:
        document_id = new_id()
        await self.objects.put(original_key(TENANT, document_id), data)
        file = StoredFile(document_id, name, "", len(data), document_id, priority=priority)
        async with self.db.work() as sql:
            row, _ = await take_in(sql, TENANT, file)
        return documents.uploaded_event(row)

    async def parse(
        self, event: DocumentUploaded, using: DocumentParser, *, check_s: float = 0.01
    ) -> None:
        watch = DocumentWatch(check_s)
        await parser.parse(event, parser.Deps(self.db, self.objects, using, watch))

    async def chunk(self, event: DocumentParsed) -> None:
        await chunker.chunk(event, chunker.Deps(self.db, self.objects))

    async def row(self, document_id: str) -> RowMapping:
        async with self.db.reading() as sql:
            return await documents.load(sql, TENANT, document_id)

    async def events(self, kind: type[Event]) -> list[tuple[str, Event]]:
        async with self.db.reading() as sql:
            rows = await sql.rows(select(outbox).order_by(outbox.c.created_at))
        events = [(row["topic"], decode(row["value"])) for row in rows]
        return [(topic, event) for topic, event in events if isinstance(event, kind)]

    async def last_parsed(self) -> DocumentParsed:
        event = (await self.events(DocumentParsed))[-1][1]
        assert isinstance(event, DocumentParsed)
        return event


@pytest.fixture
def pipeline(db: Database, tmp_path: Path) -> Pipeline:
    return Pipeline(db, DiskObjectStore(tmp_path / "objects"))


async def test_a_file_is_parsed_and_chunked(pipeline: Pipeline) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode(), priority="urgent")
    await pipeline.parse(uploaded, InProcessParser())
    await pipeline.chunk(await pipeline.last_parsed())

    row = await pipeline.row(uploaded.document_id)
    assert row["state"] == "chunked"
    assert row["media_type"] == "text/markdown"
    assert row["counts"] == {
        "chars": len(HANDBOOK),
        "blocks": 4,
        "tables": 1,
        "rows": 2,
        "parents": 1,
        "chunks": 1,
    }
    text = (await pipeline.objects.get(text_key(TENANT, uploaded.document_id, 1))).decode()
    async with pipeline.db.reading() as sql:
        (child,) = await chunks.children(sql, TENANT, uploaded.document_id, 1)
        (parent,) = await chunks.parents(sql, TENANT, uploaded.document_id, 1)
    assert child.text == text[child.start : child.end]
    assert child.parent_id == parent.chunk_id
    assert child.heading_path == ("手册",)
    assert [topic for topic, _ in await pipeline.events(DocumentParsed)] == [
        "documents.parsed.v1.urgent"
    ]
    assert await pipeline.events(DocumentChunked) == [
        (
            "documents.chunked.v1.urgent",
            DocumentChunked(TENANT, uploaded.document_id, 1, 1, 1, "urgent"),
        )
    ]


async def test_redelivery_changes_nothing(pipeline: Pipeline) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())
    for _ in range(2):
        await pipeline.parse(uploaded, InProcessParser())
    parsed = await pipeline.last_parsed()
    for _ in range(2):
        await pipeline.chunk(parsed)
    assert len(await pipeline.events(DocumentParsed)) == 1
    assert len(await pipeline.events(DocumentChunked)) == 1


async def test_large_documents_are_written_in_several_units_and_repeats_overwrite(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunker, "CHUNKS_PER_UNIT", 7)
    uploaded = await pipeline.upload(("一段普通的文字。" * 50 + "\n\n").encode() * 40, "a.txt")
    await pipeline.parse(uploaded, InProcessParser())
    await pipeline.chunk(await pipeline.last_parsed())
    counts = (await pipeline.row(uploaded.document_id))["counts"]
    async with pipeline.db.reading() as sql:
        stored = await chunks.count(sql, TENANT, uploaded.document_id, 1)
    assert stored == counts["chunks"] + counts["parents"] > 14


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "a.txt", "empty"),
        (b" \r\n\t", "a.md", "empty"),
        (b"\x89PNG\r\n\x1a\n....", "scan.pdf", "no-text-layer"),
        (b"7z\xbc\xaf\x27\x1c....", "a.txt", "unsupported-archive"),
        (b"PK\x05\x06" + b"\0" * 18, "a.zip", "unsupported"),
    ],
)
async def test_refused_files_end_failed_with_a_reason_and_advice(
    pipeline: Pipeline, data: bytes, name: str, reason: str
) -> None:
    uploaded = await pipeline.upload(data, name)
    with pytest.raises(PermanentError) as caught:
        await pipeline.parse(uploaded, InProcessParser())
    failure = Failure(caught.value.reason, caught.value.detail, 1, permanent=True)
    for _ in range(2):
        await failing(pipeline.db, "parse")(uploaded, failure)
    row = await pipeline.row(uploaded.document_id)
    assert (row["state"], row["stage"], row["reason"]) == ("failed", "parse", reason)
    assert len(row["detail"]) > 20


async def test_another_tenants_document_is_left_alone(pipeline: Pipeline) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())
    foreign = DocumentUploaded("other", uploaded.document_id, 1, "x", "", uploaded.object_key, 1)
    await pipeline.parse(foreign, InProcessParser())
    assert (await pipeline.row(uploaded.document_id))["state"] == "uploaded"
    assert await pipeline.events(DocumentParsed) == []


async def test_a_missing_original_is_reported(pipeline: Pipeline) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())
    await pipeline.objects.delete_prefix(f"{TENANT}/")
    with pytest.raises(PermanentError, match="missing-original"):
        await pipeline.parse(uploaded, InProcessParser())


class EndlessParser:
    """Works until it is cancelled."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.stopped = False

    async def parse(self, source: AsyncIterator[bytes], request: ParseRequest) -> Parsed:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped = True
        raise AssertionError("unreachable")


async def test_cancelling_the_document_stops_a_running_parse(pipeline: Pipeline) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())
    endless = EndlessParser()
    task = asyncio.create_task(pipeline.parse(uploaded, endless))
    await endless.started.wait()
    async with pipeline.db.work() as sql:
        await documents.cancel(sql, TENANT, uploaded.document_id)
    await asyncio.wait_for(task, timeout=60)
    assert endless.stopped
    assert (await pipeline.row(uploaded.document_id))["state"] == "cancelled"


class ScriptedParser(InProcessParser):
    """Counts its work, and has something happen to the document when it is done."""

    def __init__(self, db: Database, *happens: Change) -> None:
        self.calls = 0
        self._db = db
        self._happens = happens

    async def parse(self, source: AsyncIterator[bytes], request: ParseRequest) -> Parsed:
        self.calls += 1
        parsed = await super().parse(source, request)
        await happen(self._db, self._happens)
        return parsed


async def happen(db: Database, changes: Sequence[Change]) -> None:
    for change in changes:
        async with db.work() as sql:
            (row,) = await sql.rows(select(document_rows))
            await change(sql, TENANT, row["id"])


ENDS = [
    pytest.param([documents.cancel], id="cancelled"),
    pytest.param([documents.tombstone], id="deleted"),
    pytest.param([documents.tombstone, documents.purge], id="purged"),
    pytest.param([documents.start_generation], id="overtaken"),
]


@pytest.mark.parametrize("ends", ENDS)
async def test_what_nobody_waits_for_is_not_parsed(
    pipeline: Pipeline, ends: Sequence[Change]
) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())
    await happen(pipeline.db, ends)
    counting = ScriptedParser(pipeline.db)
    await pipeline.parse(uploaded, counting)
    assert counting.calls == 0


@pytest.mark.parametrize("ends", ENDS)
async def test_a_parse_that_comes_too_late_leaves_no_files(
    pipeline: Pipeline, ends: Sequence[Change]
) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())
    await pipeline.parse(uploaded, ScriptedParser(pipeline.db, *ends), check_s=3600)
    assert await pipeline.objects.keys("") == [original_key(TENANT, uploaded.document_id)]
    assert await pipeline.events(DocumentParsed) == []


async def test_a_second_parse_of_a_generation_leaves_the_first_ones_files(
    pipeline: Pipeline,
) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())

    async def first(sql: UnitOfWork, tenant: str, document_id: str) -> object:
        expect = {"uploaded"}
        return await documents.advance(sql, tenant, document_id, 1, expect=expect, to="parsed")

    await pipeline.parse(uploaded, ScriptedParser(pipeline.db, first), check_s=3600)
    assert await pipeline.objects.get(text_key(TENANT, uploaded.document_id, 1))


class HeldObjects(FakeObjectStore):
    """Lets nobody read, and says that somebody tried."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def get(self, key: str) -> bytes:
        self.asked.set()
        await asyncio.Event().wait()
        return b""


async def test_cancelling_the_document_stops_a_running_chunk_stage(pipeline: Pipeline) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())
    await pipeline.parse(uploaded, InProcessParser())
    held = HeldObjects()
    deps = chunker.Deps(pipeline.db, held, DocumentWatch(0.01))
    task = asyncio.create_task(chunker.chunk(await pipeline.last_parsed(), deps))
    await held.asked.wait()
    await happen(pipeline.db, [documents.cancel])
    await asyncio.wait_for(task, 60)
    assert await pipeline.events(DocumentChunked) == []


@pytest.mark.parametrize("ends", ENDS)
async def test_what_nobody_waits_for_is_not_chunked(
    pipeline: Pipeline, ends: Sequence[Change]
) -> None:
    uploaded = await pipeline.upload(HANDBOOK.encode())
    await pipeline.parse(uploaded, InProcessParser())
    await happen(pipeline.db, ends)
    held = HeldObjects()
    await chunker.chunk(await pipeline.last_parsed(), chunker.Deps(pipeline.db, held))
    assert not held.asked.is_set()
