"""Sentences cut into rules: each the clauses up to the one that says what has to be done.

"不超过两万元的由总经理审批，超过的须经财务总监审批" is two rules, each with a bound and an
approver of its own.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from libs.documents.graph.conditions import Condition
from libs.documents.graph.names import Name
from libs.documents.graph.verbs import Verb, stated_verbs
from libs.documents.sentences import sentence_spans

_CLAUSE_END: Final = re.compile(
    r"[；;\n]|[，,](?!\d{3})|"
    r"[ ](?:and|while|whereas|but|otherwise)[ ](?=(?:those|the|any|all|amounts?|anything|claims?|"
    r"reimbursements?|"
    r"expenses?|if|for|up[ ]to|above|over|below|under|exceed|more|less|no[ ]more|not)\b)",
    re.IGNORECASE,
)
_HARD_END: Final = ("；", ";", "\n")


@dataclass(slots=True)
class Part:
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

    def add(self, other: "Part") -> None:
        self.end = other.end
        self.names += other.names
        self.conditions += other.conditions
        self.verbs += other.verbs
        self.hard_end = other.hard_end


def rules_by_sentence(
    text: str, found: Sequence[Name], bounds: Sequence[Condition]
) -> Iterator[list[Part]]:
    """The rules of each sentence, with the names and conditions that are in them.

    `found` and `bounds` are those of `text`, in order.
    """
    names_left, bounds_left = list(reversed(found)), list(reversed(bounds))
    for start, end in sentence_spans(text):
        yield _rules(_clauses(text, start, end, names_left, bounds_left))


def _clauses(
    text: str, start: int, end: int, names_left: list[Name], bounds_left: list[Condition]
) -> Iterator[Part]:
    """The clauses of a sentence with what is in them; takes that from both stacks."""
    cuts = list(_CLAUSE_END.finditer(text, start, end))
    for stop, next_start, mark in [
        *((cut.start(), cut.end(), cut.group()) for cut in cuts),
        (end, end, "\n"),
    ]:
        part = Part(start, stop, hard_end=mark in _HARD_END)
        while names_left and names_left[-1].start < next_start:
            name = names_left.pop()
            if name.start >= start:
                part.names.append(name)
        while bounds_left and bounds_left[-1].start < next_start:
            bound = bounds_left.pop()
            if bound.start >= start:
                part.conditions.append(bound)
        part.verbs = list(stated_verbs(text, start, stop))
        start = next_start
        if part.start < part.end:
            yield part


def _rules(clauses: Iterable[Part]) -> list[Part]:
    rules: list[Part] = []
    for clause in clauses:
        last = rules[-1] if rules else None
        if last is None or last.hard_end or _begins_a_rule(last, clause):
            rules.append(clause)
        else:
            last.add(clause)
    return rules


def _begins_a_rule(last: Part, clause: Part) -> bool:
    if not last.verbs:
        return last.has_bound and clause.has_bound
    return bool(clause.verbs) or (last.has_bound and clause.has_bound)
