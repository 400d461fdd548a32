"""What a comparison of the stores can find."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    MISSING_CHUNKS = "missing-chunks"  # a store lacks chunks of the generation that search shows
    EXTRA_CHUNKS = "extra-chunks"  # an index has rows of it that SQL does not know
    MISSING_OBJECT = "missing-object"  # the original, text.txt or document.json
    WRONG_COUNT = "wrong-count"  # the document's own counts differ from its chunks
    NOT_SHOWN = "not-shown"  # `indexed`, and yet search shows another generation or none
    LEFTOVER_GENERATION = "leftover-generation"  # of a generation that is over
    LEFTOVER_DOCUMENT = "leftover-document"  # of a document that does not exist
    LEFTOVER_INDEX = "leftover-index"  # of a set of indexes that is over; of no document


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in one store. `detail` is a sentence for people."""

    kind: Kind
    tenant: str
    document_id: str
    generation: int | None
    store: str  # sql | objects | vectors | keywords | graph | new vectors | new keywords
    detail: str

    def shown(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class Tally:
    """What was looked at."""

    documents: int = 0  # with a row in SQL, tombstones too
    chunks: int = 0  # children that search shows
    in_progress: int = 0  # documents that something was still happening to
    findings: int = 0
