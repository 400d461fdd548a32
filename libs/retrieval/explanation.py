"""Why a search found what it found: plain values, to be shown as they are."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from libs.documents.analysis import analyse
from libs.retrieval.channels import Found
from libs.retrieval.gate import Verdict
from libs.retrieval.policy import RetrievalPolicy
from libs.retrieval.ranking import Ranking, Rerank
from libs.retrieval.types import Hit, Scores, in_context
from libs.storage.ports import IndexHit


@dataclass(frozen=True, slots=True)
class Term:
    term: str  # as analysed
    weight: float  # its IDF in the tenant's rows


@dataclass(frozen=True, slots=True)
class ChannelScore:
    """What a channel says about a hit; `rank` counts from 1 among what may be shown."""

    rank: int
    raw: float  # as the index scores: cosine or BM25
    score: float  # calibrated similarity, or share of the best
    floor: float
    passed: bool
    adds: float  # to the fused score


@dataclass(frozen=True, slots=True)
class HitExplanation:
    rank: int
    fused_rank: int  # before copies were moved down and a rerank model put the first ones in order
    channels: Mapping[str, ChannelScore]  # those that found it
    # A chunk that the vector channel did not find counts as near as the last one it did.
    adds: Mapping[str, float]
    matched_terms: Sequence[Term]


@dataclass(frozen=True, slots=True)
class ChannelExplanation:
    found: int  # rows the index gave
    dropped: Mapping[str, int]  # why and how many: filtered stale deleted foreign unknown
    below_floor: int  # of what may be shown; another channel may have passed them
    floor: float


@dataclass(frozen=True, slots=True)
class GateExplanation:
    """Whether an answer would be given from these hits."""

    passed: bool
    coverage: float
    nearest: float
    needed: float  # what coverage and nearest similarity must add up to
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    terms: Sequence[Term]
    matching_documents: int | None  # None: no filter
    channels: Mapping[str, ChannelExplanation]
    near_copies: int
    rerank: Rerank | None
    gate: GateExplanation
    seconds: Mapping[str, float]  # by step; steps run side by side
    hits: Mapping[str, HitExplanation]  # by chunk id


def explain(
    found: Found,
    ranking: Ranking,
    shown: Sequence[Hit],
    weights: Mapping[str, float],
    verdict: Verdict,
    hidden: Mapping[str, str],
    policy: RetrievalPolicy,
) -> Explanation:
    """
    Args:
        shown: The hits that are given, in their order.
        weights: IDF of the question's terms.
        hidden: Why each chunk that SQL does not show is not shown.
    """
    trace = found.trace
    scored = {
        "vector": _scores(trace.vector, found.vector, policy.vector_floor),
        "keyword": _scores(trace.keyword, found.keyword, policy.keyword_floor),
        "graph": _scores(trace.graph, found.graph, 0.0),
    }
    fused_ranks = {hit.chunk_id: rank for rank, hit in enumerate(ranking.fused, start=1)}
    hits = {}
    for rank, hit in enumerate(shown, start=1):
        adds = _adds(hit.scores, policy)
        channels = {
            name: _with(scores[hit.chunk_id], adds[name])
            for name, scores in scored.items()
            if getattr(hit.scores, name) is not None
        }
        present = set(analyse(in_context(hit)))
        matched = [Term(term, weight) for term, weight in weights.items() if term in present]
        fused_rank = fused_ranks[hit.chunk_id]
        hits[hit.chunk_id] = HitExplanation(rank, fused_rank, channels, adds, matched)
    return Explanation(
        terms=[Term(term, weight) for term, weight in weights.items()],
        matching_documents=None if trace.matching is None else len(trace.matching.document_ids),
        channels={
            "vector": _channel(trace.vector, scored["vector"], hidden, policy.vector_floor),
            "keyword": _channel(trace.keyword, scored["keyword"], hidden, policy.keyword_floor),
            "graph": _channel(trace.graph, scored["graph"], hidden, 0.0),
        },
        near_copies=sum(hit.duplicate_of is not None for hit in ranking.hits),
        rerank=ranking.rerank,
        gate=GateExplanation(
            verdict.passed,
            verdict.coverage,
            nearest_of(ranking.hits),
            verdict.needed,
            verdict.reason,
        ),
        seconds=dict(trace.timings.seconds),
        hits=hits,
    )


def nearest_of(hits: Sequence[Hit]) -> float:
    """The highest calibrated similarity among hits; 0.0 without any."""
    return max((hit.scores.vector or 0.0 for hit in hits), default=0.0)


def _adds(scores: Scores, policy: RetrievalPolicy) -> dict[str, float]:
    """The parts of a fused score. Fusion counts a nearness even where the vector channel has none,
    so that part is the rest.
    """
    adds = {"keyword": policy.keyword_weight * (scores.keyword or 0.0)}
    if scores.graph is not None:
        adds["graph"] = policy.graph_weight * scores.graph
    return {"vector": scores.fused - sum(adds.values()), **adds}


@dataclass(frozen=True, slots=True)
class _Score:
    rank: int
    raw: float
    score: float
    floor: float


def _scores(
    raw: Sequence[IndexHit], calibrated: Mapping[str, float], floor: float
) -> dict[str, _Score]:
    shown = [hit for hit in raw if hit.chunk_id in calibrated]
    return {
        hit.chunk_id: _Score(rank, hit.score, calibrated[hit.chunk_id], floor)
        for rank, hit in enumerate(shown, start=1)
    }


def _with(score: _Score, adds: float) -> ChannelScore:
    passed = score.score >= score.floor
    return ChannelScore(score.rank, score.raw, score.score, score.floor, passed, adds)


def _channel(
    raw: Sequence[IndexHit],
    scores: Mapping[str, _Score],
    hidden: Mapping[str, str],
    floor: float,
) -> ChannelExplanation:
    dropped = Counter(hidden[h.chunk_id] for h in raw if h.chunk_id in hidden)
    below = sum(score.score < floor for score in scores.values())
    return ChannelExplanation(len(raw), dict(dropped), below, floor)
