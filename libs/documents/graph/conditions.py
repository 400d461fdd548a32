"""What a text says about numbers and dates: "超过两万元", "up to $5,000", "自2024年1月1日起"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from libs.documents.graph.comparators import DATES, INCLUSIVE, NUMBERS, excludes
from libs.documents.graph.intervals import DATE, Interval, comparable, meet
from libs.documents.graph.values import Value, like, values
from libs.documents.graph.widths import plain_width


@dataclass(frozen=True, slots=True)
class Condition:
    """An interval as written, comparator included: `text[start:end]`.

    `compared` is False for a value that stands alone: what a question asks about, or what a rule
    grants, but no bound.
    """

    interval: Interval
    start: int
    end: int
    compared: bool


_BETWEEN: Final = re.compile(
    r"(?P<mark>[ ]?\([^()]{1,8}\))?[ ]?(?:至|到|~|～|-|–|—|to|and|与|和)[ ]?", re.I
)
_NEEDS_BETWEEN: Final = re.compile(r"and|与|和", re.I)
_SAYS_BETWEEN: Final = re.compile(r"(?:介于|在|between)[ ]?$", re.I)
_RANGE_FROM: Final = re.compile(r"(?:自|从|from|between|介于)[ ]?$", re.I)
_JOINED: Final = re.compile(r"[ ]?[,，、]?[ ]?(?:但|且|并且?|而|and|but)?[ ]?", re.I)
_REACH: Final = 40  # characters before a value in which its comparator ends


def conditions(text: str) -> list[Condition]:
    """Every value of `text` with what is said about it, in order; linear in its length."""
    text = plain_width(text)
    found: list[Condition] = []
    pending = values(text)
    at = 0
    while at < len(pending):
        ranged = _range(text, pending[at : at + 2])
        found.append(ranged or _compared(text, pending[at]))
        at += 2 if ranged else 1
    return _joined(text, [each for each in found if not each.interval.is_empty])


def _range(text: str, pair: Sequence[Value]) -> Condition | None:
    """`5 000 至 2 万元`, `between X and Y`, `2024-01-01 to 2024-06-30`."""
    if len(pair) < 2:
        return None
    first, second = pair
    link = _BETWEEN.match(text, first.end)
    if link is None or link.end() != second.start:
        return None
    before = text[max(0, first.start - 12) : first.start]
    if _NEEDS_BETWEEN.search(link.group()) and not _SAYS_BETWEEN.search(before):
        return None
    first, second = like(first, second), like(second, first)
    one, other = first.interval, second.interval
    if one.unit != other.unit or one.low is None or other.high is None or one.low > other.high:
        return None
    mark, closing = INCLUSIVE.match(text, first.end), INCLUSIVE.match(text, second.end)
    opening = _RANGE_FROM.search(before)
    return Condition(
        Interval(one.unit, one.low, other.high, excludes(mark), excludes(closing)),
        first.start - (len(before) - opening.start() if opening else 0),
        closing.end() if closing else second.end,
        compared=True,
    )


def _compared(text: str, value: Value) -> Condition:
    before, after = DATES if value.interval.unit == DATE else NUMBERS
    mark = INCLUSIVE.match(text, value.end)
    end = mark.end() if mark else value.end
    for sign, words in after:
        if match := words.match(text, end):
            closing = INCLUSIVE.match(text, match.end())
            strict = excludes(mark) or excludes(closing)
            return _bounded(
                value, sign, mark or closing, strict, value.start, (closing or match).end()
            )
    window = text[max(0, value.start - _REACH) : value.start]
    for sign, words in before:
        if match := words.search(window):
            start = value.start - len(window) + match.start()
            sign = f"{sign[0]}=" if match["with"] else sign
            return _bounded(value, sign, mark, excludes(mark), start, end)
    return Condition(value.interval, value.start, value.end, compared=False)


def _bounded(
    value: Value, sign: str, mark: re.Match[str] | None, strict: bool, start: int, end: int
) -> Condition:
    low, high = value.interval.low, value.interval.high
    if mark is not None:  # "(含)" and "(不含)" say it better than the words do
        sign = sign[0] if strict else f"{sign[0]}="
    unit = value.interval.unit
    match sign:
        case ">":
            interval = Interval(unit, low=high, low_open=True)
        case ">=":
            interval = Interval(unit, low=low)
        case "<":
            interval = Interval(unit, high=low, high_open=True)
        case _:
            interval = Interval(unit, high=high)
    return Condition(interval, start, end, compared=True)


def _joined(text: str, found: Sequence[Condition]) -> list[Condition]:
    """ "5万元以上10万元以下" is one band, not two bounds."""
    joined: list[Condition] = []
    for each in found:
        last = joined[-1] if joined else None
        if last is not None and _makes_a_band(text, last, each):
            band = meet(last.interval, each.interval)
            joined[-1] = replace(last, interval=band, end=each.end)
        else:
            joined.append(each)
    return joined


def _makes_a_band(text: str, one: Condition, other: Condition) -> bool:
    if not (one.compared and other.compared) or not comparable(one.interval, other.interval):
        return False
    link = _JOINED.match(text, one.end)
    if link is None or link.end() != other.start:
        return False
    half_open = {(i.low is None, i.high is None) for i in (one.interval, other.interval)}
    return len(half_open) == 2 and not meet(one.interval, other.interval).is_empty
