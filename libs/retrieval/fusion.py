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
    vector: Mapping[str, float], keyword: Mapping[str, float], policy: RetrievalPolicy
) -> list[tuple[str, Scores]]:
    """Chunks that pass a floor in at least one channel, best first, ties by id.

    A weighted sum of the scores themselves: on the question sets it finds more than reciprocal
    ranks do, which forget how much better the best hit is. A chunk that the vector channel did
    not return is at most as near as the last one it did, and counts as that.

    Args:
        vector: Calibrated similarities in [0, 1] of what the vector channel found.
        keyword: Shares of the best score, (0, 1], of what the keyword channel found.
    """
    passing = {chunk_id for chunk_id, score in vector.items() if score >= policy.vector_floor}
    passing |= {chunk_id for chunk_id, score in keyword.items() if score >= policy.keyword_floor}
    farthest = min(vector.values(), default=0.0)
    scored = []
    for chunk_id in passing:
        added = parts(vector.get(chunk_id, farthest), keyword.get(chunk_id, 0.0), policy)
        scores = Scores(sum(added.values()), vector.get(chunk_id), keyword.get(chunk_id))
        scored.append((chunk_id, scores))
    return sorted(scored, key=lambda pair: (-pair[1].fused, pair[0]))


def parts(vector: float, keyword: float, policy: RetrievalPolicy) -> dict[str, float]:
    """What each channel adds to a fused score."""
    return {"vector": policy.vector_weight * vector, "keyword": policy.keyword_weight * keyword}
