"""Whether evidence is enough to answer from: the absolute gate behind the relative floors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from libs.documents.analysis import analyse, covered_share, has_han
from libs.retrieval.policy import RetrievalPolicy


@dataclass(frozen=True, slots=True)
class Verdict:
    passed: bool
    coverage: float  # share of the question's IDF weight that the evidence covers, [0, 1]
    reason: str = ""  # why not, for a person
    needed: float = 0.0  # what coverage and nearest similarity had to add up to


@dataclass(frozen=True, slots=True)
class Rarity:
    """How rare a question's terms are in a tenant's rows, and how many rows those are."""

    weights: Mapping[str, float]  # IDF by term; unknown terms weigh most
    rows: int


def judge(
    question: str,
    rarity: Rarity,
    texts: Sequence[str],
    nearest: float,
    policy: RetrievalPolicy,
    *,
    fits: float = 0.0,
) -> Verdict:
    """Decide on one question.

    The best keyword hit is always 1.0 and something is always nearest, so neither says that the
    answer is there. Together they do: the share of the question's rare terms that the best hits
    hold, and how near the nearest of them is: either alone loses many more answerable questions.

    How much is needed grows with the library, as the best of many rows is near anything. Of
    question sets over parts of their documents, sums that decline 93 % of foreign questions were
    0.72 at 29 rows, 0.95 at 100, 1.05 at 570 and 1.11 at 1 300; with one threshold for all, what
    people ask in their own words was declined in a small library. (A fact that the right document
    lacks cannot be told this way.)

    A question in another script than every hit can share few terms with them: for it nearness
    above the vector floor is enough.

    Args:
        texts: The best hits, as they were indexed.
        nearest: The highest calibrated similarity among the hits.
        fits: The best graph score among the hits. A rule that the question's numbers meet, about
            what it names and saying what it asks, is evidence enough beside nearness.
    """
    needed = policy.certainty_of(rarity.rows)
    if not texts:
        return Verdict(False, 0.0, "nothing found above the floors", needed)
    present = {term for text in texts for term in analyse(text)}
    coverage = covered_share(rarity.weights, present)
    passed = coverage + nearest >= needed
    if has_han(question) not in {has_han(text) for text in texts}:
        passed = passed or nearest >= policy.vector_floor
    if fits >= policy.graph_certainty:
        passed = passed or nearest >= policy.vector_floor
    reason = "" if passed else f"what was found covers {coverage:.0%} of the question"
    return Verdict(passed, coverage, reason, needed)
