"""Splitting: a question that asks several things becomes questions that each stand alone."""

import re

from libs.contracts.plan import MAX_SUB_QUESTIONS
from libs.documents.language import language_of
from services.orchestrator.domain.rewrite import is_fragment, rewrite
from services.orchestrator.domain.wording import specific_words, words

_SENTENCE_END = re.compile(r"(?<=[?？])\s*")
_EN_JOINT = re.compile(
    r"(?:[,;]\s*|\s+)(?:and(?:\s+also)?|also|then|plus)\s+"
    r"(?=(?:what|when|where|which|who|whose|why|how|is|are|was|were|does|do|did|can|could|should|has|have)\b)",
    re.IGNORECASE,
)
_ZH_JOINT = re.compile(
    r"[，,；;]\s*(?:以及|还有|并且|另外|同时|而且|然后|那么|还|又|和)?|(?:以及|还有|并且|另外)"
)
_EN_ASKS = re.compile(
    r"^\W*(?:(?:in|on|at|for|by|from|to|under|of|with)\s+)?"
    r"(?:what|when|where|which|who|whose|why|how|is|are|was|were|does|do|did|can|could|should|has|have)\b",
    re.IGNORECASE,
)
_ZH_ASKS = re.compile(
    "什么|怎么|怎样|如何|为何|何时|哪|谁|多少|多大|多久|多长|几|吗|是否|是不是|有没有|能否|能不能|可否|呢"
)


def split(question: str) -> list[str]:
    """The sub-questions of a compound question, at most `MAX_SUB_QUESTIONS`; empty: it is one.

    Pronouns of a later part are resolved by the first part. A question is left whole when any part
    could not be asked alone, or when there are more parts than allowed.
    """
    parts: list[str] = []
    for sentence in filter(None, (s.strip() for s in _SENTENCE_END.split(question))):
        parts += _clauses(sentence)
    if not 2 <= len(parts) <= MAX_SUB_QUESTIONS:
        return []
    resolved = [parts[0]] + [
        part if is_fragment(part) else rewrite(part, parts[0]) for part in parts[1:]
    ]
    return resolved if all(_stands_alone(part) for part in resolved) else []


def _clauses(sentence: str) -> list[str]:
    joint = _ZH_JOINT if language_of(sentence) == "zh" else _EN_JOINT
    pieces = [piece.strip() for piece in joint.split(sentence) if piece and piece.strip(" ?？。.")]
    clauses: list[str] = []
    for piece in pieces:
        # What asks nothing ("In the 2017 report, ...") belongs to the clause that follows it.
        if clauses and not _asks(clauses[-1]):
            clauses[-1] = _rejoin(sentence, clauses[-1], piece)
        else:
            clauses.append(piece)
    return clauses if all(_asks(clause) for clause in clauses) else [sentence]


def _rejoin(sentence: str, first: str, second: str) -> str:
    start = sentence.find(first)
    end = sentence.find(second, start + len(first))
    return sentence[start : end + len(second)]


def _asks(clause: str) -> bool:
    if language_of(clause) == "zh":
        return _ZH_ASKS.search(clause) is not None
    return _EN_ASKS.search(clause) is not None or clause.rstrip().endswith("?")


def _stands_alone(part: str) -> bool:
    return not is_fragment(part) and bool(specific_words(part)) and len(words(part)) >= 1
