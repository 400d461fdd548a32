"""Quotations: the sentences of the evidence that say most about a question, word for word."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from libs.documents.analysis import analyse, covered_share, inverse_document_frequency
from libs.documents.graph import Condition, Fit, conditions, fit
from libs.documents.sentences import MAX_SENTENCE_CHARS, sentence_spans
from libs.retrieval.types import Passage

MAX_QUOTES_PER_QUESTION = 3
MAX_QUOTES = 6
MAX_QUOTED_CHARS = 1_200
_NEAR_BEST = 0.8  # a further sentence is quoted when it scores this share of the best one ...
_NEW_COVERAGE = 0.15  # ... or covers this much more of the question's weight
_SAME_TERMS = 0.8  # Jaccard similarity from which two sentences say the same
# Tuned on factual questions in Chinese and English, against the sentence that holds the answer.
_IMPLIED = 0.2  # worth of a term that only the sentence's surroundings hold
_FOCUS_WEIGHT = 3.0  # of the attribute that is asked for, beside the thing that has it
_MET = 0.15  # for a sentence whose bounds the question's numbers meet ...
_CONTRADICTED = 0.5  # ... and what is left of one whose bounds they miss
_FRAME_WEIGHT = 0.3  # of words that only say where to look

_ASKS_NUMBER = re.compile(
    r"\b(?:how (?:much|many|long|large|old|high|far)|when|"
    r"what (?:year|date|amount|percentage|time|number))\b|"
    "多少|几|何时|什么时候|多久|多长|多大|多高|哪一?年|哪[天日月]|时间|日期|金额|比例",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"(?:根据|按照|依据|在|从|关于|对于)[^，,]{2,60}[，,]|"
    r"(?:according to|based on|in|from|as per|per)\b[^,]{2,100},\s*",
    re.IGNORECASE,
)
_FOCUS = re.compile(
    "的([^的，,？?]{1,16}?)(?:是|有|为|在)?(?:什么|多少|多久|几|哪|谁|如何|怎|何时|[？?]|$)|"
    r"\b(?:what|which)\s+(?:is|was|are|were)\s+(?:the\s+|[\w.& ]{2,60}'s\s+)"
    r"((?:[\w-]+\s+){0,3}[\w-]+?)"
    r"(?=\s+(?:of|for|in|at|on|by|from|to|that|after|during)\b|\?)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百千万亿]{2,}|[一二三四五六七八九十]+[年月日天个岁]")


@dataclass(frozen=True, slots=True)
class Quote:
    """A run of a document's text; `start`/`end` are code points into `text.txt`."""

    passage: Passage
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.passage.text[self.start - self.passage.start : self.end - self.passage.start]


@dataclass(frozen=True)
class _Sentence:
    passage: Passage
    start: int  # into the passage's text
    end: int
    prior: float  # what retrieval thinks of this place, (0, 1]
    context: frozenset[str]  # terms of the passage and its headings

    @property
    def text(self) -> str:
        return self.passage.text[self.start : self.end]

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(analyse(self.text))


def best_quotes(question: str, passages: Sequence[Passage]) -> list[Quote]:
    """At most three sentences that answer best, best first; the passages' order is retrieval's.

    A sentence scores by the share of the question's IDF weight that it covers (IDF within these
    passages; the attribute asked for counts more, a phrase such as "according to the report" less),
    by where retrieval put it, and by holding a number where one is asked for. Later ones must add
    something; sentences that say the same are taken once.
    """
    sentences = [sentence for i, passage in enumerate(passages) for sentence in _cut(passage, i)]
    weights = _weights(question, sentences)
    wants_number = _ASKS_NUMBER.search(question) is not None
    asked = conditions(question)
    ranked = sorted(
        (
            (_fitting(_score(sentence, weights, wants_number), sentence, asked), sentence)
            for sentence in sentences
        ),
        key=lambda pair: (-pair[0], pair[1].passage.evidence_id, pair[1].start),
    )
    chosen: list[tuple[float, _Sentence]] = []
    covered: set[str] = set()
    for score, sentence in ranked:
        if len(chosen) == MAX_QUOTES_PER_QUESTION:
            break
        if any(_alike(sentence, other) for _, other in chosen):
            continue
        gain = covered_share(weights, covered | sentence.terms) - covered_share(weights, covered)
        if chosen and gain < _NEW_COVERAGE and score < _NEAR_BEST * chosen[0][0]:
            continue
        chosen.append((score, sentence))
        covered |= sentence.terms
    return [_quote(sentence) for _, sentence in chosen]


def supporting_quote(claim: str, passage: Passage) -> Quote:
    """The sentence of a passage that supports a claim of an answer best."""
    quotes = best_quotes(claim, [passage])
    return quotes[0] if quotes else Quote(passage, passage.start, passage.end)


def bounded(quotes: Sequence[Quote]) -> list[Quote]:
    """As many of the quotes, in order and without repeats, as one answer may hold; at least one."""
    kept: dict[tuple[str, int], Quote] = {}
    char_count = 0
    for quote in quotes:
        char_count += len(quote.text)
        if kept and (len(kept) == MAX_QUOTES or char_count > MAX_QUOTED_CHARS):
            break
        kept.setdefault((quote.passage.document_id, quote.start), quote)
    return list(kept.values())


def _cut(passage: Passage, rank: int) -> list[_Sentence]:
    found = []
    around = "\n".join((passage.document_name, *passage.heading_path, passage.text))
    context = frozenset(analyse(around))
    for start, end in _whole_sentences(passage.text):
        at = passage.start + start
        hit_rank = next(
            (i for i, hit in enumerate(passage.hits) if hit.start <= at < hit.end), None
        )
        inside = 1.0 if hit_rank == 0 else 0.8 if hit_rank is not None else 0.5
        found.append(_Sentence(passage, start, end, inside / (1 + 0.25 * rank), context))
    return found


def _whole_sentences(text: str) -> list[tuple[int, int]]:
    """Sentences, with what ends in a colon joined to what it introduces."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if spans and text[spans[-1][1] - 1] in ":：" and end - spans[-1][0] <= MAX_SENTENCE_CHARS:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _weights(question: str, sentences: Sequence[_Sentence]) -> dict[str, float]:
    counts = Counter(term for sentence in sentences for term in sentence.terms)
    frame, rest = _frame(question)
    focus, framing = set(analyse(_focus(rest))), set(analyse(frame)) - set(analyse(rest))
    return {
        term: inverse_document_frequency(len(sentences), counts[term])
        * (_FOCUS_WEIGHT if term in focus else _FRAME_WEIGHT if term in framing else 1.0)
        for term in dict.fromkeys(analyse(question))
    }


def _frame(question: str) -> tuple[str, str]:
    """(where to look, what is asked): "According to the verdict, who ...", "根据判决书，……"."""
    match = _FRAME.match(question)
    return (match.group(), question[match.end() :]) if match else ("", question)


def _focus(question: str) -> str:
    """The attribute that is asked for, as far as the words' order shows it; or ''."""
    match = _FOCUS.search(question)
    return next((group for group in match.groups() if group), "") if match else ""


def _score(sentence: _Sentence, weights: dict[str, float], wants_number: bool) -> float:
    said = covered_share(weights, sentence.terms)
    implied = covered_share(weights, sentence.terms | sentence.context)
    score = 0.75 * ((1 - _IMPLIED) * said + _IMPLIED * implied) + 0.25 * sentence.prior
    if wants_number and _NUMBER.search(sentence.text):
        score += 0.1
    if _says_little(sentence.text):
        score *= 0.5
    return score


def _fitting(score: float, sentence: _Sentence, asked: Sequence[Condition]) -> float:
    """A rule for up to 20 000 is no answer about 35 000, however well its words match."""
    if not asked:
        return score
    outcomes = [fit(asked, [each]) for each in conditions(sentence.text)]
    if Fit.SATISFIED in outcomes:
        return score + _MET
    return score * _CONTRADICTED if Fit.CONTRADICTED in outcomes else score


def _says_little(text: str) -> bool:
    """Headings, questions and scraps: they name a matter without saying anything about it."""
    bare = text.strip()
    return bare.endswith(("?", "？", ":", "：")) or bare.startswith("#") or len(analyse(bare)) < 4


def _alike(one: _Sentence, other: _Sentence) -> bool:
    union = one.terms | other.terms
    return not union or len(one.terms & other.terms) / len(union) >= _SAME_TERMS


def _quote(sentence: _Sentence) -> Quote:
    passage = sentence.passage
    return Quote(passage, passage.start + sentence.start, passage.start + sentence.end)
