"""The channels of one question: embed, search both indexes at once, keep what SQL shows."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from libs.documents.analysis import analyse
from libs.kernel import TransientError, look_at
from libs.models.ports import Embedder
from libs.observability.metrics import HITS_DROPPED
from libs.retrieval import graph
from libs.retrieval.fusion import relative_to_best
from libs.retrieval.policy import RetrievalPolicy
from libs.retrieval.timing import Timings
from libs.storage.ports import IndexHit, KeywordIndex, Vector, VectorIndex
from libs.storage.sql import Database, active_index
from libs.storage.sql.active_index import ActiveIndex
from libs.storage.sql.document_filter import EVERY, DocumentFilter, Matching, matching
from libs.storage.sql.hydration import VisibleChunk, hydrate

# A filter on more documents than this costs more in the indexes than asking them for more rows.
PUSHED_DOCUMENTS = 300
MAX_ROWS = 16_384  # what a full Milvus gives at most


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the channels see it."""

    tenant: str
    text: str
    domains: Sequence[str] = ()
    filters: DocumentFilter = EVERY
    wanted: int = 0  # hits; channels give their `candidates` at least
    parents: bool = True  # whether anybody reads them


@dataclass(slots=True)
class Trace:
    """What happened on the way, for who asks why."""

    timings: Timings = field(default_factory=Timings)
    matching: Matching | None = None  # None: no filter
    active: ActiveIndex | None = None  # what was searched; None: nothing
    vector: Sequence[IndexHit] = ()  # as the index gave them, visible or not
    keyword: Sequence[IndexHit] = ()
    graph: Sequence[IndexHit] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What the channels found and SQL shows, by chunk id, best first."""

    chunks: dict[str, VisibleChunk]
    vector: dict[str, float]  # calibrated similarity
    keyword: dict[str, float]  # share of the best visible hit's score
    trace: Trace = field(default_factory=Trace)
    graph: dict[str, float] = field(default_factory=dict)  # what rules that fit are worth, (0, 1]

    def best(self, count: int) -> "Found":
        """The first `count` of each channel."""
        near, said = (dict(islice(each.items(), count)) for each in (self.vector, self.keyword))
        return Found(self.chunks, near, said, self.trace, self.graph)


@dataclass(frozen=True, slots=True)
class Channels:
    db: Database
    embedder: Embedder
    vectors: VectorIndex
    keywords: KeywordIndex
    policy: RetrievalPolicy

    async def active(self) -> ActiveIndex:
        async with self.db.reading() as sql:
            return await active_index.read(sql)

    async def find(self, question: Question) -> Found:
        """Raises: TransientError when a store or the embedder cannot be used now."""
        trace = Trace()
        if question.filters:
            async with self.db.reading() as sql:
                trace.matching = await matching(
                    sql, question.tenant, question.filters, question.domains
                )
            if not trace.matching.document_ids:
                return Found({}, {}, {}, trace)
        # What needs no vector is done while the question is embedded.
        query = asyncio.create_task(self._embed(question.text, trace))
        query.add_done_callback(look_at)
        try:
            active, trace.graph = await asyncio.gather(
                self.active(), self._by_graph(question, trace)
            )
            try:
                return await self._search(question, active, query, trace)
            except TransientError:
                now = await self.active()
                if now == active:
                    raise
            # Another set became the active one, and this one was removed before it was searched.
            return await self._search(question, now, query, trace)
        finally:
            query.cancel()

    async def _search(
        self, question: Question, active: ActiveIndex, query: asyncio.Task[Vector], trace: Trace
    ) -> Found:
        if active.embedding_model != self.embedder.name:  # their vectors mean nothing to each other
            raise TransientError(
                f"the search index was made with {active.embedding_model}, and "
                f"{self.embedder.name} is set up: run `sluice reindex`"
            )
        trace.active = active
        search = _Search(self, question, active, query, analyse(question.text), trace)
        return await search.run()

    async def _by_graph(self, question: Question, trace: Trace) -> list[IndexHit]:
        with trace.timings.of("graph"):
            return await graph.search(
                self.db, question.tenant, question.text, domains=question.domains
            )

    async def _embed(self, text: str, trace: Trace) -> Vector:
        with trace.timings.of("embed_query"):
            return await self.embedder.embed_query(text)


@dataclass(slots=True)
class _Search:
    """One question's search: asks for more rows until enough of them may be shown."""

    channels: Channels
    question: Question
    active: ActiveIndex
    query: asyncio.Task[Vector]
    terms: Sequence[str]
    trace: Trace

    async def run(self) -> Found:
        policy = self.channels.policy
        wanted = max(policy.candidates, self.question.wanted)
        needed = max(policy.candidates // 2, self.question.wanted)
        most = MAX_ROWS if self.trace.matching else policy.max_candidates
        pushed, asked = self._first_step(wanted)
        while True:
            near, (said, visible) = await asyncio.gather(
                self._by_vector(pushed, asked), self._said_and_shown(pushed, asked)
            )
            self.trace.vector, self.trace.keyword = near, said
            known = {hit.chunk_id for hit in (*said, *self.trace.graph)}
            rest = [hit for hit in self._matching(near) if hit.chunk_id not in known]
            visible |= await self._visible(rest)
            crowded_out = any(
                len(hits) == asked and sum(hit.chunk_id in visible for hit in hits) < needed
                for hits in (near, said)
            )
            if crowded_out and asked < most:
                asked = min(asked * 4, most)
            elif crowded_out and self.trace.matching and not pushed:
                # Matching documents lie too far down: however many they are, name them.
                pushed, asked = sorted(self.trace.matching.document_ids), wanted
            else:
                return self._found(visible, near, said)

    def _first_step(self, wanted: int) -> tuple[list[str], int]:
        """Which documents the indexes are told, and for how many rows they are asked.

        Few documents are named to the indexes. Of many a share that matches is expected among the
        rows, and what else comes is left out here: naming 1 000 takes three times as long as the
        search, and 10 000 fifteen times.
        """
        matching = self.trace.matching
        if matching is None:
            return [], wanted
        share = len(matching.document_ids) / max(matching.searchable, 1)
        if len(matching.document_ids) <= PUSHED_DOCUMENTS or wanted / share > MAX_ROWS:
            return sorted(matching.document_ids), wanted
        return [], min(int(wanted / share * 1.5) + 1, MAX_ROWS)

    def _matching(self, hits: Sequence[IndexHit]) -> list[IndexHit]:
        matching = self.trace.matching
        return [h for h in hits if matching is None or h.document_id in matching.document_ids]

    async def _by_vector(self, documents: Sequence[str], limit: int) -> list[IndexHit]:
        query = await self.query
        with self.trace.timings.of("vector"):
            return await self.channels.vectors.search(
                self.active.vector_collection,
                self.question.tenant,
                query,
                limit,
                domains=self.question.domains,
                documents=documents,
            )

    async def _by_keyword(self, documents: Sequence[str], limit: int) -> list[IndexHit]:
        with self.trace.timings.of("keyword"):
            return await self.channels.keywords.search(
                self.active.keyword_index,
                self.question.tenant,
                self.terms,
                limit,
                domains=self.question.domains,
                documents=documents,
            )

    async def _said_and_shown(
        self, documents: Sequence[str], limit: int
    ) -> tuple[list[IndexHit], dict[str, VisibleChunk]]:
        """The faster channel's hits, and what SQL shows of all but the slower one's."""
        said = await self._by_keyword(documents, limit)
        return said, await self._visible(self._matching([*said, *self.trace.graph]))

    async def _visible(self, hits: Sequence[IndexHit]) -> dict[str, VisibleChunk]:
        ids = {hit.chunk_id for hit in hits}
        with self.trace.timings.of("hydration"):
            async with self.channels.db.reading() as sql:
                visible = await hydrate(
                    sql, self.question.tenant, sorted(ids), parents=self.question.parents
                )
        HITS_DROPPED.inc(len(ids) - len(visible))
        return visible

    def _found(
        self,
        visible: dict[str, VisibleChunk],
        by_vector: Sequence[IndexHit],
        by_keyword: Sequence[IndexHit],
    ) -> Found:
        calibrate = self.channels.embedder.calibrate
        near = {h.chunk_id: calibrate(h.score) for h in by_vector if h.chunk_id in visible}
        said = {h.chunk_id: h.score for h in by_keyword if h.chunk_id in visible}
        fits = {h.chunk_id: h.score for h in self.trace.graph if h.chunk_id in visible}
        found = Found(visible, near, relative_to_best(said), self.trace, fits)
        return found.best(max(self.channels.policy.candidates, self.question.wanted))
