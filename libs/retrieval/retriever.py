"""The one way to search: hits for people, evidence for answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from libs.documents.analysis import analyse, term_weights
from libs.models.ports import Embedder, Reranker
from libs.observability.metrics import RETRIEVALS
from libs.retrieval.assembly import Offer, assemble
from libs.retrieval.channels import Channels, Found, Question
from libs.retrieval.evidence import group_by_parent, within_budget
from libs.retrieval.explanation import Explanation, explain, nearest_of
from libs.retrieval.gate import Rarity, Verdict, judge
from libs.retrieval.policy import RetrievalPolicy
from libs.retrieval.ranking import Ranking, rank
from libs.retrieval.types import Evidence, Hit, Neighbour, in_context
from libs.storage.ports import KeywordIndex, VectorIndex
from libs.storage.sql import Database
from libs.storage.sql.document_filter import EVERY, DocumentFilter
from libs.storage.sql.hydration import around, why_hidden

_EVIDENCE_HITS = 20  # different ones; more than a budget of passages ever takes


@dataclass(frozen=True, slots=True)
class Query:
    """What a person searches for, and how much is to be said about it."""

    tenant: str
    text: str
    limit: int = 10
    domains: Sequence[str] = ()
    filters: DocumentFilter = EVERY
    neighbours: int = 0  # chunks before and after each hit
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    hits: Sequence[Hit]  # best first
    explanation: Explanation | None = None


class Retriever:
    """Vector and keyword search in parallel, floors, fusion, and only what SQL shows.

    Deterministic for the same stores. Every method raises TransientError when a store or the
    embedder cannot be used now; a foreign tenant's chunks can never come out. Without the
    reranker, or while it fails, the fused order stands.
    """

    def __init__(
        self,
        db: Database,
        embedder: Embedder,
        vectors: VectorIndex,
        keywords: KeywordIndex,
        policy: RetrievalPolicy | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._policy = policy or RetrievalPolicy()
        self._db = db
        self._keywords = keywords
        self._reranker = reranker
        self._channels = Channels(db, embedder, vectors, keywords, self._policy)

    async def search(
        self, tenant: str, query: str, *, limit: int = 10, domains: Sequence[str] = ()
    ) -> list[Hit]:
        """The `limit` best children above the floors, best first; each says why it is there."""
        return list((await self.find(Query(tenant, query, limit, domains))).hits)

    async def find(self, query: Query) -> Result:
        """Search with filters, neighbours and an explanation.

        The list is full whenever enough rows pass filters and floors, however few they are among
        the tenant's; a longer list begins with the shorter one.
        """
        question = Question(
            query.tenant, query.text, query.domains, query.filters, query.limit, parents=False
        )
        found, ranking = await self._ranked(question, query.limit)
        hits = ranking.hits[: query.limit]
        RETRIEVALS.labels("evidence" if hits else "declined").inc()
        explanation = await self._explain(question, found, ranking, hits) if query.explain else None
        if query.neighbours and hits:
            hits = await self._with_neighbours(query, found, hits)
        return Result(hits, explanation)

    async def gather(
        self, tenant: str, questions: Sequence[str], *, domains: Sequence[str] = ()
    ) -> Evidence:
        """Evidence for an answer to all `questions` (a question or its sub-questions).

        Passages are parents (or the part of one around its hits) within the policy's budgets,
        numbered 1..n in order of question and rank: the closed set a citation may name. A
        question whose evidence does not pass the gate adds none; declined means that no question
        has any.
        """
        asked = [Question(tenant, text, domains) for text in questions]
        room = min(self._policy.question_chars, self._policy.total_chars // max(1, len(asked)))
        offers = await asyncio.gather(*(self._offer(question, room) for question in asked))
        evidence = assemble(offers)
        RETRIEVALS.labels("declined" if evidence.declined else "evidence").inc()
        return evidence

    async def _ranked(self, question: Question, wanted: int) -> tuple[Found, Ranking]:
        try:
            found = await self._channels.find(question)
        except Exception:
            RETRIEVALS.labels("failed").inc()
            raise
        return found, await rank(question.text, found, wanted, self._policy, self._reranker)

    async def _offer(self, question: Question, room: int) -> Offer:
        found, ranking = await self._ranked(question, _EVIDENCE_HITS)
        rarity = await self._rarity(question, found)
        blocks = group_by_parent(ranking.hits, found.chunks)
        passages = within_budget(blocks, room, self._policy.parent_chars)
        weight = sum(rarity.weights.values())
        return Offer(passages, self._judge(question, rarity, ranking), weight)

    def _judge(self, question: Question, rarity: Rarity, ranking: Ranking) -> Verdict:
        texts = [in_context(hit) for hit in ranking.hits[: self._policy.cover_with]]
        fits = max((hit.scores.graph or 0.0 for hit in ranking.hits), default=0.0)
        nearest = nearest_of(ranking.hits)
        return judge(question.text, rarity, texts, nearest, self._policy, fits=fits)

    async def _rarity(self, question: Question, found: Found) -> Rarity:
        active = found.trace.active or await self._channels.active()
        terms = analyse(question.text)
        known = await self._keywords.frequencies(active.keyword_index, question.tenant, terms)
        return Rarity(term_weights(terms, known.total, known.rows), known.total)

    async def _explain(
        self, question: Question, found: Found, ranking: Ranking, hits: Sequence[Hit]
    ) -> Explanation:
        trace = found.trace
        with trace.timings.of("explain"):
            given = {
                hit.chunk_id: hit.document_id
                for hit in (*trace.vector, *trace.keyword, *trace.graph)
            }
            unseen = {c: d for c, d in given.items() if c not in found.chunks}
            filtered = {
                chunk_id: "filtered"
                for chunk_id, document_id in unseen.items()
                if trace.matching and document_id not in trace.matching.document_ids
            }
            async with self._db.reading() as sql:
                hidden = await why_hidden(sql, question.tenant, sorted(unseen.keys() - filtered))
            rarity = await self._rarity(question, found)
            verdict = self._judge(question, rarity, ranking)
        return explain(
            found, ranking, hits, rarity.weights, verdict, {**hidden, **filtered}, self._policy
        )

    async def _with_neighbours(self, query: Query, found: Found, hits: Sequence[Hit]) -> list[Hit]:
        chunks = [found.chunks[hit.chunk_id] for hit in hits]
        async with self._db.reading() as sql:
            near = await around(sql, query.tenant, chunks, query.neighbours)
        return [
            replace(
                hit,
                neighbours=[
                    Neighbour(step, c.chunk_id, c.text, c.start, c.end, c.page, c.heading_path)
                    for step, c in near[hit.chunk_id].items()
                ],
            )
            for hit in hits
        ]
