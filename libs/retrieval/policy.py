"""The numbers that retrieval is steered by."""

from dataclasses import dataclass
from math import log10


@dataclass(frozen=True, slots=True)
class RetrievalPolicy:
    """Floors are similarities and shares in [0, 1]; budgets are characters.

    The defaults were measured on Chinese and English question sets with passages of about 350
    characters; `vector_floor` refers to the embedder's calibrated similarity.
    """

    candidates: int = 50  # visible rows wanted from each channel
    max_candidates: int = 800  # rows asked for when most of what is found is not visible
    vector_floor: float = 0.45
    keyword_floor: float = 0.35  # of the best visible keyword hit's score
    # Fusion: weighted sum of similarity and keyword share.
    vector_weight: float = 0.7
    keyword_weight: float = 0.3
    # What a rule that is met adds: more than wording sets two rules about the same matter apart.
    graph_weight: float = 0.2
    # Hits whose texts have this share of their pieces in common say the same; above 1 none do.
    same_text: float = 0.9
    rerank_top: int = 30  # hits that a rerank model, where there is one, puts in order
    # The gate: coverage and nearest similarity must add up to so much in a library of up to
    # `small_library` rows, and to more by the slope for each tenfold of it, up to the maximum.
    min_certainty: float = 0.85
    max_certainty: float = 1.15
    certainty_slope: float = 0.19
    small_library: int = 30
    graph_certainty: float = 0.8  # a rule that fits as well as this needs nearness alone
    cover_with: int = 3  # hits whose terms count as cover
    question_chars: int = 2_200
    total_chars: int = 5_200
    parent_chars: int = 2_200

    def certainty_of(self, rows: int) -> float:
        """What the gate asks for in a library of so many rows."""
        tenfolds = log10(max(rows, self.small_library) / self.small_library)
        return min(self.min_certainty + self.certainty_slope * tenfolds, self.max_certainty)
