"""Any interleaving of clients, redelivered and stale events leaves one visible generation, ever
newer, and nothing stuck."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import RowMapping, select

from libs.contracts import (
    DocumentChunked,
    DocumentControl,
    DocumentDeleted,
    DocumentFailed,
    DocumentParsed,
    DocumentUploaded,
    decode,
)
from libs.kernel import ConflictError, NotFoundError, new_id
from libs.storage.sql import UnitOfWork, open_database
from libs.storage.sql import documents as repo
from libs.storage.sql.document_events import pending_event
from libs.storage.sql.document_states import DocumentState
from libs.storage.sql.idempotency import ReusedKeyError
from libs.storage.sql.tables import document_timeline, documents, outbox
from libs.storage.sql.uploads import StoredFile, take_in

TENANT = "acme"
STAGES = 4  # a document needs at most so many deliveries from any state to a final one
STAGE_OF = {DocumentUploaded: "parse", DocumentParsed: "chunk", DocumentChunked: "index"}


async def deliver(sql: UnitOfWork, event: Any, *, fails: bool) -> None:
    """What the pipeline does to SQL on an event, however often and late it comes."""
    of = (event.tenant, event.document_id)
    match event:
        case DocumentDeleted():
            await repo.purge(sql, *of)
        case DocumentControl() | DocumentFailed():
            pass  # the pipeline asks SQL, whatever a broadcast said
        case _ if fails:
            stage = STAGE_OF[type(event)]
            await repo.fail(sql, *of, event.generation, stage=stage, reason="corrupt", detail="")
        case DocumentUploaded():
            await _advance(sql, event, "uploaded", "parsed")
        case DocumentParsed():
            await _advance(sql, event, "parsed", "chunked")
        case DocumentChunked():
            await repo.activate(sql, *of, event.generation)


async def _advance(sql: UnitOfWork, event: Any, expect: str, to: str) -> None:
    of = (event.tenant, event.document_id)
    if await repo.advance(sql, *of, event.generation, expect={expect}, to=to):
        following = pending_event(await repo.load(sql, *of))
        assert following is not None
        await sql.emit(following)


async def _everything(sql: UnitOfWork) -> tuple[list[RowMapping], list[RowMapping]]:
    entries = select(document_timeline).order_by(document_timeline.c.seq)
    return await sql.rows(select(documents)), await sql.rows(entries)


class Interleavings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.db = open_database(f"sqlite+aiosqlite:///{self.folder.name}/sluice.db")
        self.runner.run(self.db.create_schema())
        self.ids: list[str] = []
        self.whole: set[tuple[str, int]] = set()
        self.newest_shown: dict[str, int] = {}

    def work(self, change: Callable[[UnitOfWork], Awaitable[Any]]) -> Any:
        async def unit() -> Any:
            async with self.db.work() as sql:
                return await change(sql)

        try:
            return self.runner.run(unit())
        except (NotFoundError, ConflictError, ReusedKeyError):
            return None

    def rows(self) -> list[RowMapping]:
        found: list[RowMapping] = self.work(lambda sql: sql.rows(select(documents)))
        return found

    @rule(content=st.sampled_from("aab"), key=st.sampled_from([None, "k1", "k2"]))
    def upload(self, content: str, key: str | None) -> None:
        file = StoredFile(new_id(), "n", "text/plain", 1, content * 64)
        taken = self.work(lambda sql: take_in(sql, TENANT, file, idempotency_key=key))
        if taken is not None and taken[0]["id"] not in self.ids:
            self.ids.append(taken[0]["id"])

    @rule(
        data=st.data(), what=st.sampled_from([repo.start_generation, repo.cancel, repo.tombstone])
    )
    def ask(self, data: st.DataObject, what: Any) -> None:
        if self.ids:
            document_id = data.draw(st.sampled_from(self.ids))
            self.work(lambda sql: what(sql, TENANT, document_id))

    @rule(which=st.integers(0, 7), fails=st.integers(0, 9))
    def deliver_any(self, which: int, fails: int) -> None:
        """Any event ever emitted: the next one, one delivered before, or a stale one."""
        sent = self.work(lambda sql: sql.rows(select(outbox).order_by(outbox.c.id.desc())))
        if sent:
            event = decode(sent[which % len(sent)]["value"])
            self.work(lambda sql: deliver(sql, event, fails=fails == 0))

    @rule()
    def reconcile(self) -> None:
        for row in self.rows():
            event = pending_event(row)
            if event is not None:
                self.work(partial(deliver, event=event, fails=False))

    @invariant()
    def what_is_shown_is_whole_and_never_older(self) -> None:
        rows, entries = self.work(_everything)
        self.whole |= {
            (entry["document_id"], entry["generation"])
            for entry in entries
            if entry["stage"] == DocumentState.INDEXED
        }
        for row in rows:
            shown = row["active_generation"]
            if row["state"] == DocumentState.INDEXED:
                assert shown == row["generation"]
            if shown is not None:
                assert row["state"] != DocumentState.DELETED
                assert (row["id"], shown) in self.whole
                assert self.newest_shown.get(row["id"], 0) <= shown <= row["generation"]
                self.newest_shown[row["id"]] = shown
            assert (row["content_key"] is None) == (row["state"] == DocumentState.DELETED)
            mine = [entry for entry in entries if entry["document_id"] == row["id"]]
            assert [entry["seq"] for entry in mine] == list(range(1, len(mine) + 1))
            assert mine[-1]["stage"] == row["state"]

    def teardown(self) -> None:
        for _ in range(STAGES):
            self.reconcile()
        stuck = [row["state"] for row in self.rows() if pending_event(row) is not None]
        self.runner.run(self.db.close())
        self.runner.close()
        self.folder.cleanup()
        assert stuck == []


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(
    max_examples=12,
    stateful_step_count=30,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes here
)
