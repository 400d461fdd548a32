"""What retrieval gives to search and to answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Scores:
    """Why a hit stands where it stands; None: the channel did not find it."""

    fused: float
    vector: float | None = None  # calibrated similarity in [0, 1]
    keyword: float | None = None  # share of the best keyword hit's score, (0, 1]
    graph: float | None = None
    rerank: float | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk near a hit in the same document; `position` is -1 for the one before it, 1 after."""

    position: int
    chunk_id: str
    text: str
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A child chunk that was found; offsets are code points into the document's text."""

    chunk_id: str
    document_id: str
    document_name: str
    text: str
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    scores: Scores
    duplicate_of: str | None = None  # a better hit's chunk that says the same
    neighbours: Sequence[Neighbour] = ()
    lead: str = ""  # how its document begins, where the text is not that itself


@dataclass(frozen=True, slots=True)
class Passage:
    """A parent block offered as evidence, with the hits that brought it in."""

    evidence_id: int  # 1, 2, …: the closed set a citation may name
    document_id: str
    document_name: str
    text: str
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    question_index: int  # which sub-question it serves
    hits: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an answer may rest on. Empty and `declined` when nothing passed floors and gate."""

    passages: Sequence[Passage] = field(default_factory=tuple)
    declined: bool = False
    coverage: float = 0.0  # share of the questions' IDF weight that the best hits cover
    reason: str = ""


def in_context(hit: Hit) -> str:
    """A hit's text below how its document begins and its headings, as it was indexed."""
    return "\n".join(filter(None, (hit.lead, *hit.heading_path, hit.text)))
