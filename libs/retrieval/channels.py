"""The channels of one question: embed, search both indexes at once, keep what SQL shows."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from libs.documents.analysis import analyse
from libs.kernel import TransientError
from libs.models.ports import Embedder
from libs.observability.metrics import HITS_DROPPED, RETRIEVAL_SECONDS
from libs.retrieval.fusion import relative_to_best
from libs.retrieval.policy import RetrievalPolicy
from libs.storage.ports import IndexHit, KeywordIndex, Vector, VectorIndex
from libs.storage.sql import Database, active_index
from libs.storage.sql.active_index import ActiveIndex
from libs.storage.sql.hydration import VisibleChunk, hydrate


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the channels see it."""

    tenant: str
    text: str
    domains: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What the channels found and SQL shows, by chunk id."""

    chunks: dict[str, VisibleChunk]
    vector: dict[str, float]  # calibrated similarity
    keyword: dict[str, float]  # share of the best visible hit's score


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
        active, query = await asyncio.gather(self.active(), self._embed(question.text))
        if active.embedding_model != self.embedder.name:  # their vectors mean nothing to each other
            raise TransientError(
                f"the search index was made with {active.embedding_model}, and "
                f"{self.embedder.name} is set up: run `sluice reindex`"
            )
        terms = analyse(question.text)
        wanted = self.policy.candidates
        asked = wanted
        while True:
            by_vector, by_keyword = await asyncio.gather(
                self._by_vector(active, question, query, asked),
                self._by_keyword(active, question, terms, asked),
            )
            visible = await self._visible(question, by_vector, by_keyword)
            crowded_out = any(
                len(hits) == asked and sum(hit.chunk_id in visible for hit in hits) < wanted // 2
                for hits in (by_vector, by_keyword)
            )
            if not crowded_out or asked >= self.policy.max_candidates:
                return self._found(visible, by_vector, by_keyword)
            asked = min(asked * 4, self.policy.max_candidates)

    def _found(
        self,
        visible: dict[str, VisibleChunk],
        by_vector: Sequence[IndexHit],
        by_keyword: Sequence[IndexHit],
    ) -> Found:
        near = {hit.chunk_id: hit.score for hit in by_vector if hit.chunk_id in visible}
        said = {hit.chunk_id: hit.score for hit in by_keyword if hit.chunk_id in visible}
        calibrated = {
            chunk_id: self.embedder.calibrate(cosine) for chunk_id, cosine in near.items()
        }
        return Found(visible, calibrated, relative_to_best(said))

    async def _embed(self, text: str) -> Vector:
        with RETRIEVAL_SECONDS.labels("embed_query").time():
            return await self.embedder.embed_query(text)

    async def _by_vector(
        self, active: ActiveIndex, question: Question, query: Vector, limit: int
    ) -> list[IndexHit]:
        with RETRIEVAL_SECONDS.labels("vector").time():
            return await self.vectors.search(
                active.vector_collection, question.tenant, query, limit, domains=question.domains
            )

    async def _by_keyword(
        self, active: ActiveIndex, question: Question, terms: Sequence[str], limit: int
    ) -> list[IndexHit]:
        with RETRIEVAL_SECONDS.labels("keyword").time():
            return await self.keywords.search(
                active.keyword_index, question.tenant, terms, limit, domains=question.domains
            )

    async def _visible(
        self, question: Question, *rankings: Sequence[IndexHit]
    ) -> dict[str, VisibleChunk]:
        ids = {hit.chunk_id for hits in rankings for hit in hits}
        with RETRIEVAL_SECONDS.labels("hydration").time():
            async with self.db.reading() as sql:
                visible = await hydrate(sql, question.tenant, sorted(ids))
        HITS_DROPPED.inc(len(ids) - len(visible))
        return visible
