"""From what the channels found to one list: fused, without copies, and in a model's order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from libs.kernel import PermanentError, TransientError
from libs.models.ports import Reranker
from libs.observability.metrics import RERANKS
from libs.retrieval.channels import Found
from libs.retrieval.copies import below_others
from libs.retrieval.fusion import fuse
from libs.retrieval.policy import RetrievalPolicy
from libs.retrieval.types import Hit, Scores, in_context


@dataclass(frozen=True, slots=True)
class Rerank:
    """What a rerank model did; `error` says why the fused order stands instead."""

    model: str
    reranked: int  # hits; 0: the fused order stands
    error: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    hits: list[Hit]  # best first
    fused: list[Hit]  # as they stood before copies and reranking
    rerank: Rerank | None = None  # None: no model is configured


async def rank(
    query: str, found: Found, wanted: int, policy: RetrievalPolicy, reranker: Reranker | None
) -> Ranking:
    """
    Args:
        wanted: How many different hits are to lead the list.
    """
    fused, usual = _fused(found, policy)
    # The gate reads its hits from a list of any length: those must be different ones, too.
    leading = max(wanted, policy.cover_with, policy.rerank_top if reranker else 0)
    distinct = below_others(fused, leading, policy.same_text, usual)
    if reranker is None or not distinct:
        return Ranking(distinct, fused)
    with found.trace.timings.of("rerank"):
        hits, done = await _reranked(query, distinct, policy.rerank_top, reranker)
    return Ranking(hits, fused, done)


def _fused(found: Found, policy: RetrievalPolicy) -> tuple[list[Hit], int]:
    """The hits, and how many of them are the usual ones.

    More candidates than usual stand below those, so that a longer list begins alike.
    """
    best = found.best(policy.candidates)
    pairs = fuse(best.vector, best.keyword, policy, best.graph)
    usual = len(pairs)
    if max(map(len, (found.vector, found.keyword, found.graph))) > policy.candidates:
        known = {chunk_id for chunk_id, _ in pairs}
        more = fuse(found.vector, found.keyword, policy, found.graph)
        pairs += [pair for pair in more if pair[0] not in known]
    return [_hit(found, chunk_id, scores) for chunk_id, scores in pairs], usual


async def _reranked(
    query: str, hits: Sequence[Hit], top: int, reranker: Reranker
) -> tuple[list[Hit], Rerank]:
    first = list(takewhile(lambda hit: hit.duplicate_of is None, hits[:top]))
    try:
        scores = await reranker.rerank(query, [in_context(hit) for hit in first])
    except (TransientError, PermanentError) as exc:
        RERANKS.labels("failed").inc()
        return list(hits), Rerank(reranker.name, 0, str(exc))
    RERANKS.labels("done").inc()
    scored = [
        replace(hit, scores=replace(hit.scores, rerank=score))
        for hit, score in zip(first, scores, strict=True)
    ]
    scored.sort(key=lambda hit: -(hit.scores.rerank or 0.0))
    return [*scored, *hits[len(first) :]], Rerank(reranker.name, len(first))


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
        lead=visible.lead,
    )
