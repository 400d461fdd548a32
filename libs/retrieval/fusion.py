"""Two rankings into one."""

from collections.abc import Mapping

from libs.retrieval.policy import RetrievalPolicy
from libs.retrieval.types import Scores


def relative_to_best(scores: Mapping[str, float]) -> dict[str, float]:
    """BM25 scores as shares of the best one, in (0, 1]; BM25 has no absolute scale."""
    best = max(scores.values(), default=0.0)
    if best <= 0.0:
        return {}
    return {chunk_id: score / best for chunk_id, score in scores.items()}


def fuse(
    vector: Mapping[str, float],
    keyword: Mapping[str, float],
    policy: RetrievalPolicy,
    graph: Mapping[str, float] | None = None,
) -> list[tuple[str, Scores]]:
    """Chunks that pass a floor in at least one channel, best first, ties by id.

    A weighted sum of the scores themselves: on the question sets it finds more than reciprocal
    ranks do, which forget how much better the best hit is. A chunk that the vector channel did
    not return is at most as near as the last one it did, and counts as that.

    Args:
        vector: Calibrated similarities in [0, 1] of what the vector channel found.
        keyword: Shares of the best score, (0, 1], of what the keyword channel found.
        graph: Scores in (0, 1] of chunks with rules that fit; they pass and are lifted.
    """
    graph = graph or {}
    passing = {chunk_id for chunk_id, score in vector.items() if score >= policy.vector_floor}
    passing |= {chunk_id for chunk_id, score in keyword.items() if score >= policy.keyword_floor}
    passing |= graph.keys()
    farthest = min(vector.values(), default=0.0)
    scored = []
    for chunk_id in passing:
        near, said, fits = vector.get(chunk_id), keyword.get(chunk_id), graph.get(chunk_id)
        fused = (
            policy.vector_weight * (farthest if near is None else near)
            + policy.keyword_weight * (said or 0.0)
            + policy.graph_weight * (fits or 0.0)
        )
        scored.append((chunk_id, Scores(fused, near, said, fits)))
    return sorted(scored, key=lambda pair: (-pair[1].fused, pair[0]))
