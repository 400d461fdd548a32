"""The JSON shapes of evidence and citations that clients and checkpoints see."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from libs.retrieval.types import Evidence, Hit, Passage, Scores
from services.executor.domain.quotes import Quote

_PREVIEW_CHARS = 240


def evidence_event(evidence: Evidence) -> dict[str, Any]:
    """What the `evidence` event shows: one numbered item a passage, in the order of its number."""
    return {
        "declined": evidence.declined or not evidence.passages,
        "coverage": round(evidence.coverage, 4),
        "reason": evidence.reason,
        "items": [_item(passage) for passage in evidence.passages],
    }


def citation(quote: Quote) -> dict[str, Any]:
    """A citation; the document's text sliced `[start:end]` is the quote."""
    passage = quote.passage
    hit = _hit_at(passage, quote.start)
    return {
        "n": passage.evidence_id,
        "chunk_id": hit.chunk_id if hit else "",
        "document_id": passage.document_id,
        "document_name": passage.document_name,
        "quote": quote.text,
        "start": quote.start,
        "end": quote.end,
        "page": hit.page if hit and hit.start <= quote.start < hit.end else passage.page,
    }


def freeze(evidence: Evidence) -> dict[str, Any]:
    """Evidence as JSON for a checkpoint; `thaw` gives the same value back."""
    return asdict(evidence)


def thaw(data: Mapping[str, Any]) -> Evidence:
    passages = [
        Passage(
            **{**p, "heading_path": tuple(p["heading_path"]), "hits": [_hit(h) for h in p["hits"]]}
        )
        for p in data["passages"]
    ]
    return Evidence(passages, data["declined"], data["coverage"], data["reason"])


def _hit(data: Mapping[str, Any]) -> Hit:
    return Hit(
        **{**data, "heading_path": tuple(data["heading_path"]), "scores": Scores(**data["scores"])}
    )


def _item(passage: Passage) -> dict[str, Any]:
    hit = _hit_at(passage, passage.start)
    return {
        "n": passage.evidence_id,
        "chunk_id": hit.chunk_id if hit else "",
        "document_id": passage.document_id,
        "document_name": passage.document_name,
        "start": passage.start,
        "end": passage.end,
        "page": passage.page,
        "heading_path": list(passage.heading_path),
        "question_index": passage.question_index,
        "text": passage.text[:_PREVIEW_CHARS],
    }


def _hit_at(passage: Passage, at: int) -> Hit | None:
    """The hit that covers a place, else the best one that brought the passage in."""
    covering = (hit for hit in passage.hits if hit.start <= at < hit.end)
    return next(covering, passage.hits[0] if passage.hits else None)
