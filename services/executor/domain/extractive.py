"""The extractive answer: what the documents say, quoted and cited, without any model."""

from collections.abc import Sequence
from dataclasses import dataclass

from libs.retrieval.types import Passage
from services.executor.domain.citations import unmarked
from services.executor.domain.phrases import phrase
from services.executor.domain.quotes import Quote, best_quotes, bounded


@dataclass(frozen=True, slots=True)
class ExtractiveAnswer:
    """`pieces` joined are the answer; each holds whole quotations."""

    pieces: list[str]
    quotes: list[Quote]


def extractive_answer(
    questions: Sequence[str], passages: Sequence[Passage], language: str
) -> ExtractiveAnswer:
    """Quote the best sentences for each (sub-)question, marked as quotations in its first line.

    Args:
        questions: The sub-questions, or the one question.
        passages: The evidence; `question_index` says which question a passage serves.
        language: `en` or `zh`, of the words around the quotations.
    """
    pieces, quotes = [phrase("extractive", language)], list[Quote]()
    for index, question in enumerate(questions):
        serving = [p for p in passages if p.question_index == index or len(questions) == 1]
        found = [q for q in best_quotes(question, serving) if not _repeated(q, quotes)]
        kept = bounded([*quotes, *found])[len(quotes) :]
        if len(questions) > 1:
            pieces.append(f"\n\n**{unmarked(question)}**")
        pieces += [f"\n\n“{unmarked(quote.text)}” [{quote.passage.evidence_id}]" for quote in kept]
        if not kept and not serving:
            pieces.append(f"\n\n{phrase('not_found_part', language)}")
        quotes += kept
    return ExtractiveAnswer(pieces, quotes)


def _repeated(quote: Quote, quotes: Sequence[Quote]) -> bool:
    same = (quote.passage.document_id, quote.start)
    return any((q.passage.document_id, q.start) == same for q in quotes)
