"""Rewriting by history: a follow-up becomes a question that can be searched by itself."""

import re

from libs.documents.language import HAN, language_of
from services.orchestrator.domain.subject import names_in, subject_of
from services.orchestrator.domain.wording import specific_words, words

_KIND = (
    "company|firm|product|policy|document|report|contract|rule|process|project|movie|film|book|"
    "person|man|woman|organi[sz]ation|city|country|one|department|system|service|order|event"
)
_EN_ANAPHOR = re.compile(
    rf"\b(?:(?P<possessive>its|their|his|her(?=\s+[a-z]))|(?:this|that|these|those)\s+(?:{_KIND})s?|"
    r"(?P<plain>it|they|them|he|she|him|her)\b|"
    r"(?:this|that|these|those)(?=\s*(?:[?.!,]|$)))",
    re.IGNORECASE,
)
# "it" without a referent: "is it possible", "how long does it take to".
_EN_EMPTY_IT = re.compile(
    r"\bit\s+(?:is\s+)?(?:possible|necessary|true|takes?|took|required|allowed|important|likely)\b",
    re.IGNORECASE,
)
_ZH_ANAPHOR = re.compile(
    "(?:它们|它|他们|(?<![其吉])他(?!人|们)|她们|她|上述|(?<![尤极与])其(?![他它她中实余次间])|"
    f"(?:这个|那个|该|此)(?P<noun>[{HAN}]{{0,4}}?)(?=的|是|有|在|什么|怎么|如何|何时|多少|哪|谁|为|吗|呢|[？?，,]|$))"
)
_EN_ELLIPSIS = re.compile(
    r"^(?:(?:and\s+)?(?:what|how)\s+about|and|or|also|then|so|but)\b[\s,]*(?P<rest>.*?)[\s?.!]*$",
    re.IGNORECASE,
)
_ZH_ELLIPSIS = re.compile(
    r"^(?:那么|那|还有|以及|或者)?[，,]?(?P<rest>.{1,24}?)(?:呢|怎么样|又如何)[？?。]?$"
)
_PERIODS = (
    re.compile(r"(?:19|20)\d{2}\s*年?(?:第?[一二三四1-4]季度)?"),
    re.compile(r"\bQ[1-4]\b", re.IGNORECASE),
    re.compile(
        r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
        r"(?:\s+(?:19|20)\d{2})?"
    ),
    re.compile(r"\d{1,2}月"),
)


def has_anaphor(question: str) -> bool:
    """Whether a pronoun of the question refers to something outside of it."""
    return _anaphor(question) is not None


def is_fragment(question: str) -> bool:
    """Whether it needs an earlier question: "And in 2018?", "Why?", "那退款呢？"."""
    stripped = question.strip()
    ellipsis = _ellipsis(stripped)
    return not words(stripped) or (ellipsis is not None and len(words(ellipsis)) <= 4)


def rewrite(question: str, previous: str | None) -> str:
    """The question, completed from the one before it where it cannot stand alone.

    Args:
        question: The user's words.
        previous: The last question of the conversation in its own completed form, or None.

    Returns:
        The question itself when nothing is missing, or when nothing is known that could be added.
    """
    question = question.strip()
    if previous is None:
        return question
    if is_fragment(question):
        return _complete(question, previous)
    match = _anaphor(question)
    subject = subject_of(previous)
    if match is None:
        return question
    if subject is None:
        return continued(question, previous)
    return question[: match.start()] + _standing_for(match, subject) + question[match.end() :]


def _anaphor(question: str) -> re.Match[str] | None:
    if language_of(question) == "zh":
        return next(
            (m for m in _ZH_ANAPHOR.finditer(question) if not words(question[: m.start()])), None
        )
    for match in _EN_ANAPHOR.finditer(question):
        if match.group("plain") and _EN_EMPTY_IT.match(question, match.start()):
            continue
        before = question[: match.start()]
        # A name before the pronoun is its antecedent, inside the question.
        return None if names_in(before) else match
    return None


def _standing_for(match: re.Match[str], subject: str) -> str:
    groups = match.groupdict()
    if groups.get("possessive"):
        return f"{subject}'s"
    noun = groups.get("noun")
    if noun:
        return subject if subject.endswith(noun) else f"{subject}的{noun}"
    if match.group() in ("其", "上述"):
        return f"{subject}的"
    return subject


def _ellipsis(question: str) -> str | None:
    match = (_ZH_ELLIPSIS if language_of(question) == "zh" else _EN_ELLIPSIS).match(question)
    return match.group("rest").strip() if match else None


def _complete(question: str, previous: str) -> str:
    rest = _ellipsis(question)
    if not rest:
        return continued(question, previous)
    for period in _PERIODS:
        new, old = period.search(rest), period.search(previous)
        if new and old and not specific_words(period.sub("", rest)):
            return previous[: old.start()] + new.group() + previous[old.end() :]
    subject = subject_of(previous)
    if subject and _same_kind(rest, subject):
        return previous.replace(subject, rest, 1)
    if subject and language_of(question) == "zh" and len(rest) <= 8:
        return f"{subject}的{rest}"
    return continued(rest, previous)


def _same_kind(rest: str, subject: str) -> bool:
    """Two names, or two Chinese phrases with the same head: one takes the other's place."""
    if language_of(rest) == "zh":
        return len(rest) > 2 and rest[-2:] == subject[-2:]
    return bool(names_in(rest)) and bool(names_in(subject)) and len(rest.split()) <= 8


def continued(question: str, previous: str) -> str:
    """Both questions as one, for when the later one lacks what only the earlier one says."""
    stem = previous.rstrip(" ?？.。!！")
    return f"{stem}，{question}" if language_of(previous) == "zh" else f"{stem} - {question}"
