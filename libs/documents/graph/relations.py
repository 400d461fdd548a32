"""Typed relations between names, with the conditions under which they hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from libs.documents.graph.clauses import Part, rules_by_sentence
from libs.documents.graph.conditions import Condition
from libs.documents.graph.names import Kind, Name
from libs.documents.graph.verbs import Verb


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


_BY: Final = re.compile(r"[经由]|\bby\b|\brequires?\b|\bneeds?\b|\bfrom\b", re.IGNORECASE)
_WHO: Final = (Kind.ROLE, Kind.DEPARTMENT, Kind.ORGANISATION)
_QUALIFIES_BEFORE: Final = re.compile(r"(?:的|[’']s?)?[ ]?(?:the[ ])?", re.IGNORECASE)
_QUALIFIES_AFTER: Final = re.compile(r"[ ](?:of|at|in)[ ](?:the[ ]|its[ ]|a[ ])?", re.IGNORECASE)
MAX_ENDS: Final = 4  # names at one end of a rule; more is a list, not a rule


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
    for parts in rules_by_sentence(text, found, bounds):
        subjects, verb = _ids(about), None
        for part in parts:
            rule = _rule(text, part, subjects, verb)
            subjects = _kept(part, subjects)
            verb = part.verbs[-1][0] if part.verbs else verb
            if rule is not None:
                rules.append(rule)
    return rules


def _rule(
    text: str, part: Part, inherited: Sequence[str], verb_before: Verb | None
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


def _pointing(part: Part, verb: Verb, at: int, inherited: Sequence[str]) -> Relation | None:
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


def _relation(verb: Verb, subjects: Sequence[str], objects: Sequence[str], part: Part) -> Relation:
    ends = tuple(subjects[:MAX_ENDS]), tuple(objects[:MAX_ENDS])
    return Relation(verb, *ends, tuple(part.conditions), part.start, part.end)


def _doers(text: str, part: Part, verb: Verb | None) -> list[Name]:
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


def _is_agent(text: str, part: Part, name: Name) -> bool:
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


def _kept(part: Part, inherited: Sequence[str]) -> tuple[str, ...]:
    own = [name for name in part.names if name.kind in (Kind.ACTIVITY,)]
    subjects = [n for n in part.names if n.kind is Kind.ORGANISATION and n is part.names[0]]
    return _with_inherited([*own, *subjects], inherited)


def _ids(found: Sequence[Name]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.id for name in found))
