"""Whether a rule's conditions are for the numbers that a question names."""

from collections.abc import Sequence
from enum import Enum

from libs.documents.graph.conditions import Condition
from libs.documents.graph.intervals import Interval, comparable, meet


class Fit(Enum):
    """How a question's numbers stand to a rule's conditions."""

    SATISFIED = "satisfied"
    PARTLY = "partly"  # some of the numbers asked about are within the bounds, some are not
    UNRELATED = "unrelated"  # nothing of the same unit on both sides
    CONTRADICTED = "contradicted"


def fit(asked: Sequence[Condition], ruled: Sequence[Condition]) -> Fit:
    """Whether a rule under the conditions `ruled` is for the numbers `asked` about.

    One bound that no number asked about can meet contradicts the rule, whatever else fits.
    """
    outcomes = {
        _fit(question, rule.interval)
        for rule in ruled
        if rule.compared
        for question in asked
        if comparable(question.interval, rule.interval)
    }
    for outcome in (Fit.CONTRADICTED, Fit.PARTLY, Fit.SATISFIED):
        if outcome in outcomes:
            return outcome
    return Fit.UNRELATED


def _fit(question: Condition, rule: Interval) -> Fit:
    asked = question.interval
    common = meet(asked, rule)
    if common.is_empty:
        return Fit.CONTRADICTED
    if common.low == common.high and asked.low != asked.high:
        return Fit.CONTRADICTED  # "above 20 000" and "up to 20 000" share an end, or nothing
    # "超过两万" and "两万以上" mean the same band to who asks: ends are not held against them.
    inside = common.low == asked.low and common.high == asked.high
    return Fit.SATISFIED if inside else Fit.PARTLY
