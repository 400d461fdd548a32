"""Ranking metrics, and how sure they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval (percentile bootstrap over questions)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: Sequence[float], *, seed: int = 0) -> Estimate:
    """Deterministic for the same values. Raises: ValueError without values."""
    if not values:
        raise ValueError("no values to estimate from")
    array = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = np.array(
        [array[rng.integers(0, len(array), len(array))].mean() for _ in range(RESAMPLES)]
    )
    low, high = np.percentile(means, (2.5, 97.5))
    return Estimate(float(array.mean()), float(low), float(high))


def recall_at(found: Sequence[frozenset[int]], wanted: int, k: int, *, any_one: bool) -> float:
    """Share of the references in the first `k` hits.

    Args:
        found: For each hit, best first, the references it finds, by index.
        wanted: How many references there are.
        any_one: One reference is as good as all of them.
    """
    seen = set().union(*found[:k]) if found else set()
    if any_one:
        return 1.0 if seen else 0.0
    return len(seen) / wanted


def reciprocal_rank(found: Sequence[frozenset[int]], k: int) -> float:
    """1 / rank of the first hit that finds something; 0 when none in the first `k` does."""
    return next((1 / rank for rank, refs in enumerate(found[:k], 1) if refs), 0.0)


def ndcg_at(found: Sequence[frozenset[int]], wanted: int, k: int, *, any_one: bool) -> float:
    """Normalised discounted cumulative gain; a hit gains 1 when it finds something new."""
    seen: set[int] = set()
    gained = 0.0
    for rank, refs in enumerate(found[:k], 1):
        if refs - seen and not (any_one and seen):
            gained += 1 / log2(rank + 1)
        seen |= refs
    best = sum(1 / log2(rank + 1) for rank in range(1, min(1 if any_one else wanted, k) + 1))
    return gained / best
