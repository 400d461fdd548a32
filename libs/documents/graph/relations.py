"""Typed relations between names, with the conditions under which they hold.

A sentence is cut into rules: clauses up to the one that says what has to be done. "不超过两万元的
由总经理审批，超过的须经财务总监审批" is two rules, each with a bound and an approver of its own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from libs.documents.graph.conditions import Condition
from libs.documents.graph.names import Kind, Name
from libs.documents.graph.values import plain_width
from libs.documents.sentences import sentence_spans


class Verb(StrEnum):
    APPROVES = "approves"  # object: who approves; subject: what is approved
    RESPONSIBLE = "responsible"  # object: who is responsible; subject: for what
    REPORTS_TO = "reports_to"  # subject: who reports; object: to whom
    APPLIES_TO = "applies_to"  # subject: the activity or document; object: to whom
    MEANS = "means"  # subject: the term defined
    LIMITED = "limited"  # subject: what the conditions limit; no object


@dataclass(frozen=True, slots=True)
class Relation:
    """A rule as written: `text[start:end]`.

    Attributes:
        subjects: Names the rule is about. Those of the heading, or of a rule before it in the
            same sentence, where it names none of its own.
        objects: Names at the other end; empty for `LIMITED` and `MEANS`.
        conditions: Numbers and dates that the rule names, bounds among them.
    """

    verb: Verb
    subjects: tuple[str, ...]  # `Name.id`
    objects: tuple[str, ...]
    conditions: tuple[Condition, ...]
    start: int
    end: int


_VERBS: Final = [
    (
        verb,
        re.compile(words, re.IGNORECASE),
    )
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
_CLAUSE_END: Final = re.compile(
    r"[；;\n]|[，,](?!\d{3})|"
    r"[ ](?:and|while|whereas|but|otherwise)[ ](?=(?:those|the|any|all|amounts?|anything|claims?|"
    r"reimbursements?|"
    r"expenses?|if|for|up[ ]to|above|over|below|under|exceed|more|less|no[ ]more|not)\b)",
    re.IGNORECASE,
)
_HARD_END: Final = ("；", ";", "\n")
_BY: Final = re.compile(r"[经由]|\bby\b|\brequires?\b|\bneeds?\b|\bfrom\b", re.IGNORECASE)
_DENIED: Final = re.compile(
    r"(?:无需|无须|不需|不必|毋须|免|不向)[^，,；;。]{0,14}$|"
    r"(?:(?:不(?:得|能|可|予|再|会|直接)?|[未没]|没有|拒绝)|\bnon-?)$|"
    r"(?:\b(?:not|cannot|never|without|no)|n['’]t)\b[^,;.]{0,24}$",
    re.I,
)
_WHO: Final = (Kind.ROLE, Kind.DEPARTMENT, Kind.ORGANISATION)
_QUALIFIES_BEFORE: Final = re.compile(r"(?:的|[’']s?)?[ ]?(?:the[ ])?", re.IGNORECASE)
_QUALIFIES_AFTER: Final = re.compile(r"[ ](?:of|at|in)[ ](?:the[ ]|its[ ]|a[ ])?", re.IGNORECASE)
MAX_ENDS: Final = 4  # names at one end of a rule; more is a list, not a rule


@dataclass(slots=True)
class _Part:
    """A clause, or the clauses of one rule."""

    start: int
    end: int
    names: list[Name] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    verbs: list[tuple[Verb, int]] = field(default_factory=list)
    hard_end: bool = False

    @property
    def has_bound(self) -> bool:
        return any(condition.compared for condition in self.conditions)

    def add(self, other: "_Part") -> None:
        self.end = other.end
        self.names += other.names
        self.conditions += other.conditions
        self.verbs += other.verbs
        self.hard_end = other.hard_end


def relations(
    text: str,
    found: Sequence[Name],
    bounds: Sequence[Condition],
    *,
    around: Sequence[Name] = (),
) -> list[Relation]:
    """The rules that `text` states, in order.

    Args:
        text: As `plain_width` makes it.
        found: The names in it. bounds: The conditions in it. Both in order.
        around: Names of the headings above it.
    """
    rules: list[Relation] = []
    if not found and not around:
        return rules
    about = [name for name in around if name.kind in (Kind.ACTIVITY, Kind.ORGANISATION)]
    names_left, bounds_left = list(reversed(found)), list(reversed(bounds))
    for start, end in sentence_spans(text):
        subjects, verb = _ids(about), None
        for part in _rules(list(_clauses(text, start, end, names_left, bounds_left))):
            rule = _rule(text, part, subjects, verb)
            subjects = _kept(part, subjects)
            verb = part.verbs[-1][0] if part.verbs else verb
            if rule is not None:
                rules.append(rule)
    return rules


def verbs(question: str) -> frozenset[Verb]:
    """What a question asks about its names."""
    text = plain_width(question)
    return frozenset(verb for verb, words in _VERBS if words.search(text))


def _clauses(
    text: str, start: int, end: int, names_left: list[Name], bounds_left: list[Condition]
) -> Iterator[_Part]:
    """The clauses of a sentence with what is in them; takes that from both stacks."""
    cuts = list(_CLAUSE_END.finditer(text, start, end))
    for stop, next_start, mark in [
        *((cut.start(), cut.end(), cut.group()) for cut in cuts),
        (end, end, "\n"),
    ]:
        part = _Part(start, stop, hard_end=mark in _HARD_END)
        while names_left and names_left[-1].start < next_start:
            name = names_left.pop()
            if name.start >= start:
                part.names.append(name)
        while bounds_left and bounds_left[-1].start < next_start:
            bound = bounds_left.pop()
            if bound.start >= start:
                part.conditions.append(bound)
        part.verbs = list(_verbs(text, start, stop))
        start = next_start
        if part.start < part.end:
            yield part


def _verbs(text: str, start: int, end: int) -> Iterator[tuple[Verb, int]]:
    for verb, words in _VERBS:
        for match in words.finditer(text, start, end):
            if not _DENIED.search(text[max(start, match.start() - 30) : match.start()]):
                yield verb, match.start()


def _rules(clauses: Sequence[_Part]) -> list[_Part]:
    rules: list[_Part] = []
    for clause in clauses:
        last = rules[-1] if rules else None
        if last is None or last.hard_end or _begins_a_rule(last, clause):
            rules.append(clause)
        else:
            last.add(clause)
    return rules


def _begins_a_rule(last: _Part, clause: _Part) -> bool:
    if not last.verbs:
        return last.has_bound and clause.has_bound
    return bool(clause.verbs) or (last.has_bound and clause.has_bound)


def _rule(
    text: str, part: _Part, inherited: Sequence[str], verb_before: Verb | None
) -> Relation | None:
    verb, at = part.verbs[0] if part.verbs else (None, part.end)
    if (
        verb is None
        and verb_before is not None
        and part.has_bound
        and _BY.search(text, part.start, part.end)
    ):
        verb = verb_before  # "..., and those up to 20,000 by the general manager"
    who = _doers(text, part, verb) if verb else []
    if verb in (Verb.REPORTS_TO, Verb.APPLIES_TO):
        return _pointing(part, verb, at, inherited)
    if verb is None or not who:
        verb, who = (Verb.LIMITED, []) if part.has_bound else (None, [])
    own = [name for name in part.names if name not in who and name.kind is not Kind.TERM]
    subjects = _with_inherited(own, inherited)
    if verb is None or not subjects:
        return None
    return _relation(verb, subjects, _ids(who), part)


def _pointing(part: _Part, verb: Verb, at: int, inherited: Sequence[str]) -> Relation | None:
    """Who stands before the verb, to whom it points behind it; Chinese may put 向X before it."""
    before = [name for name in part.names if name.start < at]
    behind = [name for name in part.names if name.start > at]
    if verb is Verb.REPORTS_TO:
        before, behind = ([n for n in some if n.kind in _WHO] for some in (before, behind))
        if not behind and len(before) > 1:
            before, behind = before[:-1], before[-1:]
        inherited = ()
    subjects = _ids(before) or tuple(inherited)
    return _relation(verb, subjects, _ids(behind), part) if subjects and behind else None


def _relation(verb: Verb, subjects: Sequence[str], objects: Sequence[str], part: _Part) -> Relation:
    ends = tuple(subjects[:MAX_ENDS]), tuple(objects[:MAX_ENDS])
    return Relation(verb, *ends, tuple(part.conditions), part.start, part.end)


def _doers(text: str, part: _Part, verb: Verb | None) -> list[Name]:
    """Who acts: the roles and departments of the rule, with the organisation they belong to."""
    roles = [name for name in part.names if name.kind in (Kind.ROLE, Kind.DEPARTMENT)]
    if not roles and verb is Verb.APPROVES:
        near = [name for name in part.names if name.kind is Kind.ORGANISATION]
        roles = [name for name in near if _is_agent(text, part, name)]
    doers: list[Name] = []
    for role in roles:
        doers.append(role)
        doers += [name for name in part.names if _qualifies(text, name, role)]
    return list(dict.fromkeys(doers))


def _is_agent(text: str, part: _Part, name: Name) -> bool:
    """ "经母公司审批", "approved by the parent company"."""
    before = text[max(part.start, name.start - 8) : name.start].rstrip()
    return bool(re.search(r"(?:[经由报]|\bby(?: the)?|\bof the)$", before))


def _qualifies(text: str, organisation: Name, role: Name) -> bool:
    if organisation.kind is not Kind.ORGANISATION:
        return False
    if organisation.end <= role.start:
        link = _QUALIFIES_BEFORE.match(text, organisation.end)
        return link is not None and link.end() == role.start
    link = _QUALIFIES_AFTER.match(text, role.end)
    return link is not None and link.end() == organisation.start


def _with_inherited(own: Sequence[Name], inherited: Sequence[str]) -> tuple[str, ...]:
    """A rule's own names, and of the kinds it does not name itself those it stands under."""
    kinds = {str(name.kind) for name in own}
    rest = [id_ for id_ in inherited if id_.split(":", 1)[0] not in kinds]
    return tuple(dict.fromkeys((*_ids(own), *rest)))


def _kept(part: _Part, inherited: Sequence[str]) -> tuple[str, ...]:
    own = [name for name in part.names if name.kind in (Kind.ACTIVITY,)]
    subjects = [n for n in part.names if n.kind is Kind.ORGANISATION and n is part.names[0]]
    return _with_inherited([*own, *subjects], inherited)


def _ids(found: Sequence[Name]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.id for name in found))
