"""The one way to search: hits for people, evidence for answers."""

import asyncio
from collections.abc import Sequence

from libs.documents.analysis import analyse, term_weights
from libs.models.ports import Embedder
from libs.observability.metrics import RETRIEVALS
from libs.retrieval.assembly import Offer, assemble
from libs.retrieval.channels import Channels, Found, Question
from libs.retrieval.evidence import group_by_parent, within_budget
from libs.retrieval.fusion import fuse
from libs.retrieval.gate import judge
from libs.retrieval.policy import RetrievalPolicy
from libs.retrieval.types import Evidence, Hit, Scores
from libs.storage.ports import KeywordIndex, VectorIndex
from libs.storage.sql import Database


class Retriever:
    """Vector and keyword search in parallel, floors, fusion, and only what SQL shows.

    Deterministic for the same stores. Every method raises TransientError when a store or the
    embedder cannot be used now; a foreign tenant's chunks can never come out.
    """

    def __init__(
        self,
        db: Database,
        embedder: Embedder,
        vectors: VectorIndex,
        keywords: KeywordIndex,
        policy: RetrievalPolicy | None = None,
    ) -> None:
        self._policy = policy or RetrievalPolicy()
        self._keywords = keywords
        self._channels = Channels(db, embedder, vectors, keywords, self._policy)

    async def search(
        self, tenant: str, query: str, *, limit: int = 10, domains: Sequence[str] = ()
    ) -> list[Hit]:
        """The `limit` best children above the floors, best first; each says why it is there."""
        found = await self._find(Question(tenant, query, domains))
        hits = self._ranked(found)[:limit]
        RETRIEVALS.labels("evidence" if hits else "declined").inc()
        return hits

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
        found = await asyncio.gather(*(self._find(question) for question in asked))
        room = min(self._policy.question_chars, self._policy.total_chars // max(1, len(asked)))
        offers = await asyncio.gather(
            *(
                self._offer(question, each, room)
                for question, each in zip(asked, found, strict=True)
            )
        )
        evidence = assemble(offers)
        RETRIEVALS.labels("declined" if evidence.declined else "evidence").inc()
        return evidence

    async def _find(self, question: Question) -> Found:
        try:
            return await self._channels.find(question)
        except Exception:
            RETRIEVALS.labels("failed").inc()
            raise

    def _ranked(self, found: Found) -> list[Hit]:
        return [
            _hit(found, chunk_id, scores)
            for chunk_id, scores in fuse(found.vector, found.keyword, self._policy)
        ]

    async def _offer(self, question: Question, found: Found, room: int) -> Offer:
        hits = self._ranked(found)
        weights = await self._weights(question)
        texts = [_in_context(hit) for hit in hits[: self._policy.cover_with]]
        nearest = max((hit.scores.vector or 0.0 for hit in hits), default=0.0)
        verdict = judge(question.text, weights, texts, nearest, self._policy)
        blocks = group_by_parent(hits, found.chunks)
        passages = within_budget(blocks, room, self._policy.parent_chars)
        return Offer(passages, verdict, sum(weights.values()))

    async def _weights(self, question: Question) -> dict[str, float]:
        active = await self._channels.active()
        terms = analyse(question.text)
        known = await self._keywords.frequencies(active.keyword_index, question.tenant, terms)
        return term_weights(terms, known.total, known.rows)


def _hit(found: Found, chunk_id: str, scores: Scores) -> Hit:
    visible = found.chunks[chunk_id]
    return Hit(
        chunk_id=chunk_id,
        document_id=visible.document_id,
        document_name=visible.document_name,
        text=visible.child.text,
        start=visible.child.start,
        end=visible.child.end,
        page=visible.child.page,
        heading_path=visible.child.heading_path,
        scores=scores,
    )


def _in_context(hit: Hit) -> str:
    return "\n".join((*hit.heading_path, hit.text))
