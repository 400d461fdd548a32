"""Sub-questions' evidence to one closed, numbered set."""

from collections.abc import Sequence
from dataclasses import dataclass

from libs.retrieval.evidence import Block, Window
from libs.retrieval.gate import Verdict
from libs.retrieval.types import Evidence, Passage


@dataclass(frozen=True, slots=True)
class Offer:
    """What one sub-question would add, and whether it may."""

    passages: Sequence[tuple[Block, Window]]
    verdict: Verdict
    weight: float  # of the sub-question's terms


def assemble(offers: Sequence[Offer]) -> Evidence:
    """Number the passages of the offers that passed, 1..n; a parent is offered once.

    Declined when no offer passed. The coverage is that of all sub-questions, by their weights.
    """
    passages: list[Passage] = []
    seen: set[str] = set()
    for index, offer in enumerate(offers):
        if not offer.verdict.passed:
            continue
        for block, cut in offer.passages:
            if block.parent.chunk_id not in seen:
                seen.add(block.parent.chunk_id)
                passages.append(_passage(len(passages) + 1, index, block, cut))
    return Evidence(
        passages=tuple(passages),
        declined=not passages,
        coverage=_coverage(offers),
        reason="; ".join(dict.fromkeys(o.verdict.reason for o in offers if o.verdict.reason)),
    )


def _coverage(offers: Sequence[Offer]) -> float:
    weight = sum(offer.weight for offer in offers)
    covered = sum(offer.verdict.coverage * offer.weight for offer in offers)
    return covered / weight if weight else 0.0


def _passage(evidence_id: int, question_index: int, block: Block, cut: Window) -> Passage:
    return Passage(
        evidence_id=evidence_id,
        document_id=block.document_id,
        document_name=block.document_name,
        text=cut.text,
        start=cut.start,
        end=cut.end,
        page=block.parent.page,
        heading_path=block.parent.heading_path,
        question_index=question_index,
        hits=tuple(block.hits),
    )
