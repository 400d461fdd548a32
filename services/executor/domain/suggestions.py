"""Follow-up questions that the evidence can answer, from its headings."""

from collections.abc import Sequence

from libs.documents.analysis import analyse
from libs.retrieval.types import Passage
from services.executor.domain.phrases import phrase

MAX_SUGGESTIONS = 3
_MAX_HEADING_CHARS = 60


def suggestions(question: str, passages: Sequence[Passage], language: str) -> list[str]:
    """At most three questions about sections near the evidence that the question did not name."""
    asked = set(analyse(question))
    found: dict[str, str] = {}
    for passage in passages:
        for heading in reversed(passage.heading_path):
            bare = " ".join(heading.split()).strip(" #*")
            new = set(analyse(bare)) - asked
            if new and len(bare) <= _MAX_HEADING_CHARS:
                found.setdefault(
                    bare,
                    phrase(
                        "suggest_heading", language, heading=bare, document=passage.document_name
                    ),
                )
                break
    return list(found.values())[:MAX_SUGGESTIONS]
