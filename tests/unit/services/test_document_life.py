"""Any interleaving of clients, workers, faults and stale events: one generation is searchable, and
whole, nothing is stuck, and what was deleted leaves nothing behind."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import RowMapping, select

from libs.kernel import PermanentError, TransientError
from libs.storage.keys import document_prefix
from libs.storage.sql import chunks, documents, enrichments, graph, open_database
from libs.storage.sql.document_states import FINAL, DocumentState
from libs.storage.sql.hydration import hydrate
from libs.storage.sql.tables import chunks as chunk_rows
from libs.storage.sql.tables import document_timeline, idempotency_keys
from libs.storage.sql.tables import documents as document_rows
from services.chunker import handlers as chunker
from services.indexer import enriching, writing
from tests.document_life import TENANT, CrashError, Happening, Life, LifeDatabase

T = TypeVar("T")

RULE = "Loans above 500 need approval by the board of directors."
CONTENTS = {
    name: "\n\n".join(f"{name}{n} some words. {RULE}" * 3 for n in range(5)) for name in "ab"
}
REQUESTS = ["reparse", "cancel", "delete", "resume", "fine plan", "coarse plan"]
FAULTS = [CrashError(), TransientError("away"), PermanentError("corrupt")]
INTERRUPTIONS = ["none", "none", "fault", "fault", "request", "delivery"]


class DocumentLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(chunker, "CHUNKS_PER_UNIT", 4)  # several units and several batches
        self.patch.setattr(writing, "BATCH", 4)
        self.patch.setattr(enriching, "BATCH", 2)
        opened = open_database(f"sqlite+aiosqlite:///{self.folder.name}/sluice.db")
        self.life = Life(LifeDatabase(opened.engine))
        self.run(self.life.open())
        self.shown: dict[str, int] = {}

    def run(self, work: Awaitable[T]) -> T:
        async def whole() -> T:
            return await work

        return self.runner.run(whole())

    @rule(
        content=st.sampled_from("aab"),
        key=st.sampled_from([None, None, "k1", "k2"]),
        priority=st.sampled_from(["normal", "urgent"]),
    )
    def upload(self, content: str, key: str | None, priority: str) -> None:
        self.run(self.life.upload(CONTENTS[content], key, priority))

    @rule(what=st.sampled_from(REQUESTS), which=st.integers(0, 3))
    def request(self, what: str, which: int) -> None:
        if self.life.ids:
            self.run(self.life.ask(what, self._id(which)))

    @rule(
        which=st.integers(0, 3),
        at=st.integers(0, 12),
        interruption=st.sampled_from(INTERRUPTIONS),
        give_up=st.booleans(),
        data=st.data(),
    )
    def deliver(
        self, which: int, at: int, interruption: str, give_up: bool, data: st.DataObject
    ) -> None:
        """An event on its way reaches its worker, which is interrupted at one of its effects."""
        if self.life.pending:
            self.life.effects.interrupt(at, self._happening(interruption, data))
            self.run(self.life.deliver_pending(which, give_up=give_up))
            self.life.effects.interrupt(0, None)

    @rule()
    def deliver_next(self) -> None:
        self.run(self.life.deliver_pending(0))

    @rule(which=st.integers(0, 30), at=st.integers(0, 12), data=st.data())
    def deliver_again(self, which: int, at: int, data: st.DataObject) -> None:
        """Any event that ever was: a duplicate, or a stale one."""
        if self.life.history:
            event = self.life.history[-1 - which % len(self.life.history)]
            self.life.effects.interrupt(at, self._happening("request", data))
            self.run(self.life.deliver(event))
            self.life.effects.interrupt(0, None)

    @rule()
    def lose_the_log(self) -> None:
        self.life.pending.clear()
        self.run(self.life.reconcile())

    @rule()
    def sweep(self) -> None:
        self.run(self.life.sweep())

    @invariant()
    def search_shows_exactly_the_chunks_of_the_active_generation(self) -> None:
        for row in self.run(self._rows()):
            shown, active = self.run(self._shown(row)), row["active_generation"]
            if active is None:
                assert shown == set()
                continue
            assert self.shown.get(row["id"], 0) <= active <= row["generation"]
            self.shown[row["id"]] = active
            assert shown
            assert shown == self.run(self._children(row, active))
            assert len(shown) == row["active_counts"]["chunks"]
            if row["state"] == DocumentState.INDEXED:
                assert (active, row["active_counts"]) == (row["generation"], row["counts"])

    @invariant()
    def the_graph_knows_the_active_generation_alone(self) -> None:
        for row in self.run(self._rows()):
            if row["state"] != DocumentState.DELETED:
                stored, _ = self.run(self._graph(row["id"]))
                assert set(stored) <= {row["active_generation"]}

    @invariant()
    def a_row_tells_of_its_newest_run_alone(self) -> None:
        for row in self.run(self._rows()):
            assert (row["reason"] is not None) <= (row["state"] in {"failed", "deleted"})
            assert (row["content_key"] is None) == (row["state"] == DocumentState.DELETED)
            history = self.run(self._timeline(row["id"]))
            assert [entry["seq"] for entry in history] == list(range(1, len(history) + 1))
            assert history[-1]["stage"] == row["state"]

    def teardown(self) -> None:
        try:
            self.run(self.life.settle())
            self.run(self.life.sweep(failed_before_us=2**62))
            self.search_shows_exactly_the_chunks_of_the_active_generation()
            rows = {row["id"]: row for row in self.run(self._rows())}
            assert {row["state"] for row in rows.values()} <= FINAL - {DocumentState.DELETED}
            for document_id in self.life.ids:
                self.run(self._assert_nothing_is_left_over(document_id, rows.get(document_id)))
        finally:
            self.run(self.life.db.close())
            self.runner.close()
            self.patch.undo()
            self.folder.cleanup()

    def _happening(self, interruption: str, data: st.DataObject) -> Happening | None:
        life = self.life
        match interruption:
            case "fault":
                return partial(_raise, data.draw(st.sampled_from(FAULTS)))
            case "request" if life.ids:
                what = data.draw(st.sampled_from(REQUESTS))
                return partial(life.ask, what, self._id(data.draw(st.integers(0, 3))))
            case "delivery" if len(life.history) > 1:
                which = data.draw(st.integers(0, 5))
                return partial(life.deliver, life.history[-1 - which % len(life.history)])
        return None

    def _id(self, which: int) -> str:
        return self.life.ids[-1 - which % len(self.life.ids)]

    async def _rows(self) -> list[RowMapping]:
        async with self.life.db.reading() as sql:
            return await sql.rows(select(document_rows))

    async def _timeline(self, document_id: str) -> list[RowMapping]:
        async with self.life.db.reading() as sql:
            return await documents.timeline(sql, TENANT, document_id)

    async def _shown(self, row: RowMapping) -> set[str]:
        """The chunks of the document that both channels find and SQL shows."""
        found = [
            {each.chunk_id for each in rows.values() if each.document_id == row["id"]}
            for rows in (self.life.vectors.rows["vectors"], self.life.keywords.rows["keywords"])
        ]
        async with self.life.db.reading() as sql:
            visible = [set(await hydrate(sql, TENANT, sorted(ids))) for ids in found]
        assert visible[0] == visible[1]
        return visible[0]

    async def _graph(self, document_id: str) -> tuple[dict[int, int], RowMapping | None]:
        async with self.life.db.reading() as sql:
            return (
                await graph.generations(sql, TENANT, document_id),
                await enrichments.find(sql, TENANT, document_id),
            )

    async def _assert_graph_is_whole(self, document_id: str, active: set[int]) -> None:
        stored, progress = await self._graph(document_id)
        if not active:
            assert (stored, progress) == ({}, None)
            return
        assert progress is not None
        assert {progress["generation"]} == active
        assert progress["state"] in {enrichments.DONE, enrichments.FAILED}
        if progress["state"] == enrichments.DONE:
            assert set(stored) == active

    async def _children(self, row: RowMapping, generation: int) -> set[str]:
        async with self.life.db.reading() as sql:
            stored = await chunks.children(sql, TENANT, row["id"], generation)
        return {chunk.chunk_id for chunk in stored}

    async def _assert_nothing_is_left_over(self, document_id: str, row: RowMapping | None) -> None:
        """Stores hold what is shown and the newest parse; of a deleted document, nothing."""
        indexed = {
            each.generation
            for rows in (self.life.vectors.rows["vectors"], self.life.keywords.rows["keywords"])
            for each in rows.values()
            if each.document_id == document_id
        }
        prefix = document_prefix(TENANT, document_id)
        folders = {
            key.removeprefix(prefix).split("/")[0] for key in await self.life.objects.keys(prefix)
        }
        async with self.life.db.reading() as sql:
            of_document = [
                await sql.rows(select(column).where(column == document_id))
                for column in (document_timeline.c.document_id, idempotency_keys.c.entity_id)
            ]
            cut = await sql.rows(
                select(chunk_rows.c.generation).where(chunk_rows.c.document_id == document_id)
            )
        generations = {each["generation"] for each in cut}
        shown = None if row is None else row["active_generation"]
        await self._assert_graph_is_whole(document_id, set() if shown is None else {shown})
        if row is None:
            assert (indexed, folders, generations, of_document) == (set(), set(), set(), [[], []])
            return
        active = {row["active_generation"]} - {None}
        assert indexed == active
        assert folders <= {"original", str(row["generation"]), *map(str, active)}
        failed = {row["generation"]} if row["state"] == DocumentState.FAILED else set()
        assert active <= generations <= active | failed


async def _raise(error: BaseException) -> None:
    raise error


TestDocumentLife = DocumentLife.TestCase
TestDocumentLife.settings = settings(
    max_examples=20,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes here
    suppress_health_check=[HealthCheck.too_slow],
)
