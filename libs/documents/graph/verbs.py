"""Verbs of rules, in Chinese and English: who approves, is responsible, reports to whom."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from libs.documents.graph.widths import plain_width


class Verb(StrEnum):
    APPROVES = "approves"  # object: who approves; subject: what is approved
    RESPONSIBLE = "responsible"  # object: who is responsible; subject: for what
    REPORTS_TO = "reports_to"  # subject: who reports; object: to whom
    APPLIES_TO = "applies_to"  # subject: the activity or document; object: to whom
    MEANS = "means"  # subject: the term defined
    LIMITED = "limited"  # subject: what the conditions limit; no object


_VERBS: Final = [
    (verb, re.compile(words, re.IGNORECASE))
    for verb, words in (
        (Verb.REPORTS_TO, r"汇报|报告工作|\breports?[ ](?:directly[ ])?to\b"),
        (Verb.APPLIES_TO, r"适用于|适用范围|\bappl(?:y|ies)[ ]to\b"),
        (
            Verb.APPROVES,
            r"审批|批准|核准|审定|审核|签批|签字|签署|同意|\bapprov(?:e[sd]?|al|ing)\b|"
            r"\bauthori[sz](?:e[sd]?|ation)\b|\bsign(?:s|ed)?[ -]?off\b|\bsigned[ ]by\b|"
            r"\bconsent[ ]of\b",
        ),
        (Verb.RESPONSIBLE, r"负责(?!人)|\b(?:is|are)[ ](?:responsible|accountable)[ ]for\b"),
    )
]
_DENIED: Final = re.compile(
    r"(?:无需|无须|不需|不必|毋须|免|不向)[^，,；;。]{0,14}$|"
    r"(?:(?:不(?:得|能|可|予|再|会|直接)?|[未没]|没有|拒绝)|\bnon-?)$|"
    r"(?:\b(?:not|cannot|never|without|no)|n['’]t)\b[^,;.]{0,24}$",
    re.I,
)


def verbs(question: str) -> frozenset[Verb]:
    """What a question asks about its names."""
    text = plain_width(question)
    return frozenset(verb for verb, words in _VERBS if words.search(text))


def stated_verbs(text: str, start: int, end: int) -> Iterator[tuple[Verb, int]]:
    """The verbs in `text[start:end]` that are not denied there, and where each begins."""
    for verb, words in _VERBS:
        for match in words.finditer(text, start, end):
            if not _DENIED.search(text[max(start, match.start() - 30) : match.start()]):
                yield verb, match.start()
