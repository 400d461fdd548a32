"""Who and what rules are about: organisations, departments, roles, forms and activities.

Closed word lists and a few patterns with clear edges: a name that is not found costs little, a
made-up one would be believed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from libs.documents.graph.widths import plain_width
from libs.documents.graph.words import (
    ACTIVITY_EN,
    ACTIVITY_ZH,
    DEPARTMENT_EN,
    DEPARTMENT_ZH,
    FORM_EN,
    FORM_ZH,
    ORGANISATION_EN,
    ORGANISATION_ZH,
    ROLE_EN,
    ROLE_ZH,
    SAME,
    SAME_EN,
)


class Kind(StrEnum):
    ORGANISATION = "organisation"
    DEPARTMENT = "department"
    ROLE = "role"
    FORM = "form"  # forms to fill in, and documents by their title
    ACTIVITY = "activity"  # what is regulated: reimbursement, leave, procurement
    TERM = "term"  # what a text defines


@dataclass(frozen=True, slots=True)
class Name:
    """A mention: `text[start:end]`. `key` is the same for every spelling in both languages."""

    kind: Kind
    key: str
    start: int
    end: int

    @property
    def id(self) -> str:
        """What rows and questions meet by."""
        return f"{self.kind}:{self.key}"


_NAMED_EN: Final = re.compile(
    r"\b(?:[A-Z][\w&-]{0,30}[ ]){1,4}(?:Inc|Ltd|LLC|GmbH|Corp|Corporation|Limited|PLC)\b\.?"
)

_ANY_HAN: Final = "\\u4e00-"


def _compiled(chinese: str, english: str) -> list[re.Pattern[str]]:
    """One pattern for each language; the Chinese one looks at no character that is not its own.

    That is twice as fast, as most places of a text can begin no name.
    """
    own = "".join(sorted({char for char in chinese if not char.isascii()}))
    begins = "" if _ANY_HAN in chinese else f"(?=[{own}])"
    return [
        re.compile(f"{begins}(?:{chinese})"),
        re.compile(f"\\b(?:{english})\\b", re.IGNORECASE | re.ASCII),
    ]


_PATTERNS: Final = [
    (kind, pattern)
    for kind, chinese, english in (
        (Kind.FORM, FORM_ZH, FORM_EN),
        (Kind.ROLE, ROLE_ZH, ROLE_EN),
        (Kind.DEPARTMENT, DEPARTMENT_ZH, DEPARTMENT_EN),
        (Kind.ORGANISATION, ORGANISATION_ZH, ORGANISATION_EN),
        (Kind.ACTIVITY, ACTIVITY_ZH, ACTIVITY_EN),
    )
    for pattern in _compiled(chinese, english)
]
# A company's name with one of these in it is a piece of a sentence.
_NO_NAME: Final = re.compile(r"[的了是在为对将被把并或其该本各任何每及与和由经向]")
_PARTY: Final = re.compile(r"^(?:原告|被告|甲方|乙方)(?=.{4})")

_KEEPS_S: Final = ("headquarters", "ss", "us", "human resources", "operations", "sales")


def names(text: str) -> list[Name]:
    """Every name in `text`, in order; where two overlap, the longer one."""
    text = plain_width(text)
    found = sorted(_all(text), key=lambda name: (name.start - name.end, name.start))
    kept: dict[int, Name] = {}
    taken: set[int] = set()
    for name in found:
        span = range(name.start, name.end)
        if taken.isdisjoint(span):
            taken.update(span)
            kept[name.start] = name
    return [kept[start] for start in sorted(kept)]


def _all(text: str) -> Iterator[Name]:
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if kind is Kind.ORGANISATION and match.group().endswith("有限公司"):
                if party := _PARTY.match(match.group()):
                    start += party.end()
                if _NO_NAME.search(text[start:end]):
                    continue
            yield Name(kind, key_of(text[start:end]), start, end)
    for match in _NAMED_EN.finditer(text):
        yield Name(Kind.ORGANISATION, key_of(match.group()), *match.span())


def key_of(written: str) -> str:
    """One key for all spellings of a name: case, plural, title marks, and the other language."""
    key = " ".join(plain_width(written).strip("《》 .").casefold().split())[:120]
    if key in SAME:
        return SAME[key]
    key = _singular(key)
    return SAME_EN.get(key, key)


def _singular(key: str) -> str:
    if not key.isascii() or key.endswith(_KEEPS_S) or not key.endswith("s"):
        return key
    if key.endswith("ies"):
        return f"{key[:-3]}y"
    return key[:-2] if key.endswith("ches") else key[:-1]
