"""Compares what was asked with every store, with search and with every stream."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from sqlalchemy import RowMapping, func, select

from libs.service.objects import open_objects
from libs.service.search import open_search
from libs.service.settings import PlatformSettings
from libs.storage.ports import KeywordIndex, ObjectStore, VectorIndex
from libs.storage.sql import Database, open_database
from libs.storage.sql.tables import (
    active_index,
    api_keys,
    chunks,
    dead_letters,
    documents,
    outbox,
    turn_events,
    turns,
)
from tests.chaos.load import DocumentEntry, Ledger, TurnEntry
from tests.chaos.patience import Followed, PatientClient
from tests.chaos.wishes import Fate
from tests.e2e.stack import Stack

LOST, DOUBLED, STUCK, WRONG = "lost", "doubled", "stuck", "wrong"
_RUNNING = ("uploaded", "parsed", "chunked")


@dataclass(frozen=True, slots=True)
class Fault:
    """One difference between what was promised and what is there."""

    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


@dataclass(slots=True)
class Findings:
    faults: list[Fault] = field(default_factory=list)

    def add(self, kind: str, what: str) -> None:
        self.faults.append(Fault(kind, what))

    def require(self, holds: object, kind: str, what: str) -> None:
        if not holds:
            self.add(kind, what)

    def counts(self) -> Counter[str]:
        return Counter(fault.kind for fault in self.faults)


@dataclass(slots=True)
class Stores:
    """Every store of a stack, opened for reading beside the running platform."""

    db: Database
    objects: ObjectStore
    vectors: VectorIndex
    keywords: KeywordIndex
    tenant: str
    collection: str
    index: str


@asynccontextmanager
async def open_stores(stack: Stack) -> AsyncIterator[Stores]:
    """Those that its processes use."""
    told = {"MILVUS_URI": f"http://127.0.0.1:{stack.ports[3]}", **stack.environment}
    settings = PlatformSettings.model_validate(told)
    db = open_database(settings.sql_url)
    async with db.reading() as sql:
        tenant = str(await sql.scalar(select(api_keys.c.tenant)))
        active = await sql.first(select(active_index))
    assert active is not None
    try:
        async with open_search(settings) as search, open_objects(settings) as objects:
            yield Stores(
                db,
                objects,
                search.vectors,
                search.keywords,
                tenant,
                active["vector_collection"],
                active["keyword_index"],
            )
    finally:
        await db.close()


async def settled(stores: Stores, *, patience_s: float) -> Findings:
    """Wait until nothing is under way any more; what still is in the end is stuck."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_s
    while True:
        findings = await _unfinished(stores)
        if not findings.faults or loop.time() > deadline:
            return findings
        await asyncio.sleep(0.5)


async def _unfinished(stores: Stores) -> Findings:
    findings = Findings()
    async with stores.db.reading() as sql:
        for row in await sql.rows(
            select(documents).where(documents.c.state.in_([*_RUNNING, "deleted"]))
        ):
            findings.add(STUCK, f"document {row['id']} ({row['name']}) is {row['state']}")
        open_states = turns.c.state.in_(["requested", "planned"])
        for row in await sql.rows(select(turns).where(open_states)):
            findings.add(STUCK, f"turn {row['id']} is {row['state']}")
        unsent = await sql.scalar(
            select(func.count()).select_from(outbox).where(outbox.c.sent_at.is_(None))
        )
        findings.require(not unsent, STUCK, f"{unsent} outbox rows were not sent")
    return findings


async def audit(
    ledger: Ledger, stores: Stores, client: PatientClient, *, whole_streams: bool = True
) -> Findings:
    """Everything at once; the platform must have settled.

    Args:
        whole_streams: Whether every event of every turn is still kept.
    """
    findings = Findings()
    async with stores.db.reading() as sql:
        rows = {row["id"]: row for row in await sql.rows(select(documents))}
        letters = await sql.rows(select(dead_letters))
    for letter in letters:
        findings.add(LOST, f"dead letter {letter['topic']} {letter['reason']} {letter['detail']}")
    _documents(ledger, rows, findings)
    await _stores(rows, stores, findings)
    await _search(ledger, client, findings)
    await _turns(ledger.turns, stores, findings, whole_streams)
    return findings


def _documents(ledger: Ledger, rows: dict[str, RowMapping], findings: Findings) -> None:
    known: set[str] = set()
    for entry in ledger.all_documents:
        name = entry.wish.file_name
        if entry.stuck:
            findings.add(STUCK, entry.stuck)
        known.update(entry.ids)
        expected = 2 if entry.wish.fate is Fate.RETURN else 1
        findings.require(
            len(entry.ids) <= expected, DOUBLED, f"{name} became {len(entry.ids)} documents"
        )
        for gone in entry.deleted:
            findings.require(gone not in rows, STUCK, f"{name}: {gone} was deleted and is there")
        if entry.living is not None:
            _living(entry, rows.get(entry.living), findings)
    for unknown in rows.keys() - known:
        findings.add(DOUBLED, f"document {unknown} ({rows[unknown]['name']}) was not asked for")


def _living(entry: DocumentEntry, row: RowMapping | None, findings: Findings) -> None:
    name = entry.wish.file_name
    if row is None:
        findings.add(LOST, f"{name}: {entry.living} has no record")
        return
    expected = "failed" if entry.wish.fate is Fate.BROKEN else "indexed"
    if entry.cancelled:
        expected = "cancelled"
    findings.require(
        row["state"] == expected,
        WRONG,
        f"{name} is {row['state']} ({row['reason']}: {row['detail']}), not {expected}",
    )
    findings.require(
        row["generation"] >= entry.generation, LOST, f"{name}: a parse that was asked for"
    )


async def _stores(rows: dict[str, RowMapping], stores: Stores, findings: Findings) -> None:
    total = 0
    for document_id, row in rows.items():
        shown = row["active_generation"]
        where = f"{row['name']} ({document_id}, {row['state']})"
        of = (stores.tenant, document_id)
        async with stores.db.reading() as sql:
            found = await sql.rows(
                select(chunks.c.generation, func.count().label("n"))
                .where(chunks.c.document_id == document_id, chunks.c.parent_id.is_not(None))
                .group_by(chunks.c.generation)
            )
        children = {each["generation"]: each["n"] for each in found}
        expected = {shown: row["counts"].get("chunks")} if shown is not None else {}
        if row["state"] == "indexed":
            findings.require(children == expected, WRONG, f"{where}: chunks in SQL {children}")
        visible = children.get(shown, 0)
        total += visible
        for name, count in (
            ("vectors", await stores.vectors.count(stores.collection, *of)),
            ("keywords", await stores.keywords.count(stores.index, *of)),
        ):
            kind = DOUBLED if count > visible else LOST
            findings.require(count == visible, kind, f"{where}: {count} {name}, {visible} chunks")
    for name, count in (
        ("vectors", await stores.vectors.count(stores.collection, stores.tenant)),
        ("keywords", await stores.keywords.count(stores.index, stores.tenant)),
    ):
        findings.require(count == total, DOUBLED, f"{count} {name} in all, {total} chunks")
    await _objects(rows, stores, findings)


async def _objects(rows: dict[str, RowMapping], stores: Stores, findings: Findings) -> None:
    found: dict[str, set[str]] = {}
    for key in await stores.objects.keys(f"{stores.tenant}/"):
        _, document_id, name = key.split("/", 2)
        found.setdefault(document_id, set()).add(name)
    for document_id in found.keys() - rows.keys():
        findings.add(DOUBLED, f"objects of {document_id}, which is gone: {found[document_id]}")
    for document_id, row in rows.items():
        needed = {"original"}
        if row["active_generation"] is not None:
            needed |= {f"{row['active_generation']}/{n}" for n in ("document.json", "text.txt")}
        lacking = needed - found.get(document_id, set())
        findings.require(not lacking, LOST, f"{row['name']}: objects {lacking}")


async def _search(ledger: Ledger, client: PatientClient, findings: Findings) -> None:
    gone = {dead: entry for entry in ledger.all_documents for dead in entry.deleted}
    for entry in ledger.all_documents:
        if entry.wish.fate is Fate.BROKEN:
            continue
        asked = {"query": entry.wish.question, "top_k": 20}
        response = await client.request("POST", "/v1/search", json=asked)
        hits = response.json()["hits"]
        chunk_ids = [hit["chunk_id"] for hit in hits]
        name = entry.wish.file_name
        findings.require(
            len(chunk_ids) == len(set(chunk_ids)), DOUBLED, f"{name}: a hit is listed twice"
        )
        for hit in hits:
            if hit["document_id"] in gone:
                findings.add(WRONG, f"search for {name} shows a deleted document")
        if entry.living is None or entry.cancelled:
            continue
        found = any(
            hit["document_id"] == entry.living and entry.wish.code in hit["text"]
            for hit in hits[:1]
        )
        findings.require(found, LOST, f"search does not find {name} ({entry.living})")


async def _turns(
    entries: Iterable[TurnEntry], stores: Stores, findings: Findings, whole_streams: bool
) -> None:
    asked: set[str] = set()
    for entry in entries:
        turn_id = entry.seen.turn_id
        where = f"turn {entry.wish.number} ({turn_id})"
        if entry.stuck or not entry.seen.ended:
            findings.add(STUCK, f"{where}: {entry.stuck or 'no terminal event'}")
            continue
        asked.add(turn_id)
        async with stores.db.reading() as sql:
            row = await sql.first(select(turns).where(turns.c.id == turn_id))
            stored = await sql.rows(
                select(turn_events).where(turn_events.c.turn_id == turn_id).order_by("seq")
            )
        assert row is not None
        events = [(e["seq"], e["type"], e["data"]) for e in stored]
        _stream(entry.seen, events, where, findings, whole_streams)
        _answer(entry, row, where, findings)
    async with stores.db.reading() as sql:
        known = {row["id"] for row in await sql.rows(select(turns.c.id))}
    for unknown in known - asked:
        findings.add(DOUBLED, f"turn {unknown} was not asked for, or has no end")


def _stream(
    seen: Followed,
    stored: list[tuple[int, str, object]],
    where: str,
    findings: Findings,
    whole: bool,
) -> None:
    """What the client put together over its connections is what SQL holds, once and in order."""
    got = [(frame.seq, frame.kind, frame.data) for frame in seen.frames]
    seqs = [seq for seq, _, _ in got]
    findings.require(len(seqs) == len(set(seqs)), DOUBLED, f"{where}: an event came twice")
    gaps = [pair for pair in pairwise([0, *seqs]) if pair[1] > pair[0] + 1]
    findings.require(not gaps, LOST, f"{where}: events between {gaps}")
    kept = {seq for seq, _, _ in stored}
    shown = got if whole else [each for each in got if each[0] in kept]
    findings.require(shown == stored, WRONG, f"{where}: the stream differs from what is stored")
    ends = sum(kind in {"done", "error"} for _, kind, _ in stored)
    findings.require(ends == 1, DOUBLED if ends else STUCK, f"{where}: {ends} terminal events")


def _answer(entry: TurnEntry, row: RowMapping, where: str, findings: Findings) -> None:
    if row["state"] == "cancelled":
        findings.require(entry.cancelled, WRONG, f"{where}: cancelled, and nobody asked for it")
        return
    answer = row["answer"] or ""
    right = row["state"] == "done" and entry.about.wish.code in answer
    findings.require(right, WRONG, f"{where}: {row['state']} {row['error']} {answer!r}")
    told = ""
    for frame in entry.seen.frames:
        if frame.kind == "restarted":
            told = ""
        elif frame.kind == "delta":
            told += frame.data["text"]
    findings.require(told == answer, WRONG, f"{where}: streamed {told!r}, stored {answer!r}")
    cited = {citation["document_id"] for citation in row["citations"]}
    findings.require(set(entry.about.ids) & cited, WRONG, f"{where}: cites {cited or 'nothing'}")
