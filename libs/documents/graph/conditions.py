"""What a text says about numbers and dates: "超过两万元", "up to $5,000", "自2024年1月1日起"."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from libs.documents.graph.values import (
    CURRENCIES,
    DATE,
    PLAIN,
    Interval,
    Value,
    like,
    plain_width,
    values,
)


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


class Fit(Enum):
    """How a question's numbers stand to a rule's conditions."""

    SATISFIED = "satisfied"
    PARTLY = "partly"  # some of the numbers asked about are within the bounds, some are not
    UNRELATED = "unrelated"  # nothing of the same unit on both sides
    CONTRADICTED = "contradicted"


_ABOVE, _FROM, _BELOW, _UP_TO, _AT = ">", ">=", "<", "<=", "="

_NOT_ZH: Final = (
    r"(?:不(?:得|能|可|应当?|宜|许|准|会|要|必|再|需要?|允许)?|[未没]|没有|未能|严禁|禁止)再?"
)
_NOT_EN: Final = (
    r"(?:(?:do|does|did|must|may|shall|should|can|will)[ ])?"
    r"(?:not|cannot|never|without|[a-z]{2,6}n['’]t)[ ](?:be[ ]|to[ ](?:be[ ])?)?"
)
_MORE: Final = r"(?:more|greater|higher|larger)[ ]than"
_LESS: Final = r"(?:less|fewer|lower|smaller)[ ]than"
_OR: Final = r"(?:或者?|及|和|、)?"

# The first row that matches counts, so what is denied stands before what denies it, and longest
# first within a row; 以上, 以下 and 以内 include the number, 超过, 不足 and 以外 do not
# (Civil Code of China, article 1259).
_BEFORE: Final = [
    (_BELOW, rf"{_NOT_ZH}达到?|达不到|(?:不|未|没有?)满|[不未]及"),
    (
        _UP_TO,
        rf"{_NOT_ZH}(?:超过|超出|高于|大于|多于)|至多|最多|最高|上限[为是]?|"
        rf"(?:小于|少于|低于){_OR}等于|等于{_OR}(?:小于|少于|低于)|"
        rf"{_NOT_EN}(?:exceed(?:s|ed|ing)?|in[ ]excess[ ]of|over|above|beyond|{_MORE})|"
        rf"no[ ]{_MORE}|{_LESS}[ ]or[ ]equal[ ]to|equal[ ]to[ ]or[ ]{_LESS}|at[ ]most|"
        r"up[ ]to(?:[ ]and[ ]including)?|(?:a[ ])?maximum[ ]of|limited[ ]to|within|<=|≤",
    ),
    (
        _FROM,
        rf"{_NOT_ZH}(?:低于|少于|小于)|不[低少]于|至少|最低|最少|"
        rf"(?:大于|多于|高于|超过){_OR}等于|(?:等于|达到){_OR}(?:大于|多于|高于|超过)|"
        r"达到|达|满|"
        rf"{_NOT_EN}(?:below|under|{_LESS})|no[ ]{_LESS}|at[ ]least|"
        rf"{_MORE}[ ]or[ ]equal[ ]to|equal[ ]to[ ]or[ ]{_MORE}|(?:equals?|meets?)[ ]or[ ]exceeds?|"
        r"(?:a[ ])?minimum[ ]of|starting[ ](?:at|from)|>=|≥",
    ),
    (
        _ABOVE,
        r"超过|超出|高于|大于|多于|逾|"
        rf"{_MORE}|exceed(?:s|ed|ing)?|in[ ]excess[ ]of|above|over|beyond|>",
    ),
    (_BELOW, rf"低于|少于|小于|不足|不到|{_LESS}|below|under|<"),
]
_DATE_BEFORE: Final = [
    (
        _FROM,
        rf"{_NOT_ZH}早于|{_NOT_EN}(?:before|until|earlier[ ]than|prior[ ]to)|"
        r"no[ ](?:earlier|sooner)[ ]than|"
        r"自|从|on[ ]or[ ]after|since|from|as[ ]of|effective(?:[ ](?:from|on))?|starting",
    ),
    (
        _UP_TO,
        rf"{_NOT_ZH}[晚迟]于|{_NOT_EN}(?:after|later[ ]than)|"
        r"截至|截止到?|直?至|直?到|on[ ]or[ ]before|until|through|by|no[ ]later[ ]than",
    ),
    (_ABOVE, r"[晚迟]于|after|later[ ]than"),
    (_BELOW, r"早于|before|earlier[ ]than|prior[ ]to"),
]
_FILLER: Final = (
    r"[ ]?(?:了|过|为|约|人民币|(?:a[ ]|the[ ])?(?:total|amount|sum|value)(?:[ ]of)?)?[ ]?"
    r"(?P<with>\(含\))?(?:rmb|cny)?[ ]?$"
)
_AFTER: Final = [
    (
        _FROM,
        r"[ ]?(?:及|或|和)?以上|起(?!草|诉|源|点)|[ ]?\+|[ ](?:or|and)[ ](?:more|above|over|"
        r"higher)\b(?![ ]than)",
    ),
    (
        _UP_TO,
        r"[ ]?(?:及|或|和)?(?:以下|以内|之内)|内(?!部)|[ ](?:or|and)[ ](?:less|below|under|fewer|"
        r"lower)\b(?![ ]than)",
    ),
    (_ABOVE, r"[ ]?(?:以外|之外)"),
]
_DATE_AFTER: Final = [
    (_FROM, r"(?:起|以来|开始)|[ ](?:or|and)[ ](?:later|after)\b|[ ]onwards?\b"),
    (_BELOW, r"(?:以|之)?前|[ ](?:or|and)[ ](?:earlier|before)\b"),
    (_ABOVE, r"(?:以|之)?后"),
]
_INCLUSIVE: Final = re.compile(
    r"[ ]?(?:\((?P<zh>不?含)[^()]{0,4}\)|\((?P<en>inclusive|included|exclusive|excluded)\))"
)
_BETWEEN: Final = re.compile(
    r"(?P<mark>[ ]?\([^()]{1,8}\))?[ ]?(?:至|到|~|～|-|–|—|to|and|与|和)[ ]?", re.I
)
_NEEDS_BETWEEN: Final = re.compile(r"and|与|和", re.I)
_SAYS_BETWEEN: Final = re.compile(r"(?:介于|在|between)[ ]?$", re.I)
_RANGE_FROM: Final = re.compile(r"(?:自|从|from|between|介于)[ ]?$", re.I)
_JOINED: Final = re.compile(r"[ ]?[,，、]?[ ]?(?:但|且|并且?|而|and|but)?[ ]?", re.I)
_REACH: Final = 40  # characters before a value in which its comparator ends


def _before(table: Iterable[tuple[str, str]]) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (sign, re.compile(rf"(?:(?<![A-Za-z])(?:{words})){_FILLER}", re.IGNORECASE))
        for sign, words in table
    ]


def _after(table: Iterable[tuple[str, str]]) -> list[tuple[str, re.Pattern[str]]]:
    return [(sign, re.compile(words, re.IGNORECASE)) for sign, words in table]


_NUMBERS = (_before(_BEFORE), _after(_AFTER))
_DATES = (_before(_DATE_BEFORE), _after(_DATE_AFTER))


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


def fit(asked: Sequence[Condition], ruled: Sequence[Condition]) -> Fit:
    """Whether a rule under the conditions `ruled` is for the numbers `asked` about.

    One bound that no number asked about can meet contradicts the rule, whatever else fits.
    """
    outcomes = {
        _fit(question, rule.interval)
        for rule in ruled
        if rule.compared
        for question in asked
        if _comparable(question.interval, rule.interval)
    }
    for outcome in (Fit.CONTRADICTED, Fit.PARTLY, Fit.SATISFIED):
        if outcome in outcomes:
            return outcome
    return Fit.UNRELATED


def _fit(question: Condition, rule: Interval) -> Fit:
    asked = question.interval
    common = _meet(asked, rule)
    if common.is_empty:
        return Fit.CONTRADICTED
    if common.low == common.high and asked.low != asked.high:
        return Fit.CONTRADICTED  # "above 20 000" and "up to 20 000" share an end, or nothing
    # "超过两万" and "两万以上" mean the same band to who asks: ends are not held against them.
    inside = common.low == asked.low and common.high == asked.high
    return Fit.SATISFIED if inside else Fit.PARTLY


def _comparable(one: Interval, other: Interval) -> bool:
    if one.unit == other.unit:
        return True
    money = CURRENCIES | {PLAIN}
    return PLAIN in (one.unit, other.unit) and {one.unit, other.unit} <= money


def _meet(one: Interval, other: Interval) -> Interval:
    """What both hold; the unit is the more telling one."""
    lows = [(each.low, each.low_open) for each in (one, other) if each.low is not None]
    highs = [(each.high, each.high_open) for each in (one, other) if each.high is not None]
    low, low_open = max(lows, default=(None, False))
    high, high_open = min(highs, key=lambda end: (end[0], not end[1]), default=(None, False))
    return Interval(one.unit or other.unit, low, high, low_open, high_open)


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
    mark, closing = _INCLUSIVE.match(text, first.end), _INCLUSIVE.match(text, second.end)
    opening = _RANGE_FROM.search(before)
    return Condition(
        Interval(one.unit, one.low, other.high, _excludes(mark), _excludes(closing)),
        first.start - (len(before) - opening.start() if opening else 0),
        closing.end() if closing else second.end,
        compared=True,
    )


def _compared(text: str, value: Value) -> Condition:
    before, after = _DATES if value.interval.unit == DATE else _NUMBERS
    mark = _INCLUSIVE.match(text, value.end)
    end = mark.end() if mark else value.end
    for sign, words in after:
        if match := words.match(text, end):
            closing = _INCLUSIVE.match(text, match.end())
            strict = _excludes(mark) or _excludes(closing)
            return _bounded(
                value, sign, mark or closing, strict, value.start, (closing or match).end()
            )
    window = text[max(0, value.start - _REACH) : value.start]
    for sign, words in before:
        if match := words.search(window):
            start = value.start - len(window) + match.start()
            sign = f"{sign[0]}=" if match["with"] else sign
            return _bounded(value, sign, mark, _excludes(mark), start, end)
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


def _excludes(mark: re.Match[str] | None) -> bool:
    if mark is None:
        return False
    return mark["zh"] == "不含" or (mark["en"] or "").lower().startswith("ex")


def _joined(text: str, found: Sequence[Condition]) -> list[Condition]:
    """ "5万元以上10万元以下" is one band, not two bounds."""
    joined: list[Condition] = []
    for each in found:
        last = joined[-1] if joined else None
        if last is not None and _makes_a_band(text, last, each):
            band = _meet(last.interval, each.interval)
            joined[-1] = replace(last, interval=band, end=each.end)
        else:
            joined.append(each)
    return joined


def _makes_a_band(text: str, one: Condition, other: Condition) -> bool:
    if not (one.compared and other.compared) or not _comparable(one.interval, other.interval):
        return False
    link = _JOINED.match(text, one.end)
    if link is None or link.end() != other.start:
        return False
    half_open = {(i.low is None, i.high is None) for i in (one.interval, other.interval)}
    return len(half_open) == 2 and not _meet(one.interval, other.interval).is_empty
