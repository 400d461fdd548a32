"""Cuts where the subject changes, found by the similarity of neighbouring sentence groups."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from libs.chunking.passages import Group, Passage

MAX_GROUPS = 200  # embedded for one document: some 20 s of one core

Vectors = NDArray[np.float32]


def within_budget(
    passages: Sequence[Passage], max_groups: int = MAX_GROUPS
) -> tuple[list[Passage], int]:
    """The first passages whose groups fit, and how many characters of the others are left out."""
    taken: list[Passage] = []
    left, left_out = max_groups, 0
    for passage in passages:
        fitting, rest = passage.groups[:left], passage.groups[left:]
        if len(fitting) > 1:
            taken.append(Passage(fitting))
            left -= len(fitting)
        left_out += sum(group.end - group.start for group in rest)
    return taken, left_out


def subject_cuts(groups: Sequence[Group], vectors: Vectors, max_chars: int) -> list[int]:
    """Offsets at which a passage falls apart best into pieces of at most `max_chars`.

    Of all ways to do so, the one whose pieces are most alike within: the sum, over the pairs of
    groups in a piece, of their cosine above what neighbourhood alone gives (Chroma's report calls
    this a cluster semantic chunker). Linear in the number of groups: a piece holds but a few.

    Args:
        vectors: (n, dimension), rows of unit length, one for each group.
    """
    count = len(groups)
    reach = _reach(groups, max_chars)
    usual = _usual_similarity(vectors, max(reach))
    best = np.zeros(count + 1)
    begins_at = np.zeros(count + 1, dtype=np.int64)
    for end in range(1, count + 1):
        value, best[end] = 0.0, -np.inf
        for start in range(end - 1, end - 1 - reach[end - 1], -1):
            alike = vectors[start] @ vectors[start + 1 : end].T
            value += float(np.sum(alike - usual))
            if best[start] + value > best[end]:
                best[end], begins_at[end] = best[start] + value, start
    cuts = []
    at = int(begins_at[count])
    while at > 0:
        cuts.append(groups[at].start)
        at = int(begins_at[at])
    return cuts[::-1]


def _reach(groups: Sequence[Group], max_chars: int) -> list[int]:
    """For each group, how many groups up to it fit into one piece; at least itself."""
    reach, first = [], 0
    for at, group in enumerate(groups):
        while first < at and group.end - groups[first].start > max_chars:
            first += 1
        reach.append(at - first + 1)
    return reach


def _usual_similarity(vectors: Vectors, reach: int) -> float:
    """The mean cosine of groups that could share a piece."""
    found = [
        np.sum(vectors[:-apart] * vectors[apart:], axis=1)
        for apart in range(1, min(reach, len(vectors) - 1) + 1)
    ]
    return float(np.mean(np.concatenate(found))) if found else 0.0
