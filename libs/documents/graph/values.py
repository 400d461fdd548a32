"""Values in Chinese and English text: amounts, shares, periods, counts and dates, with spans."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from libs.documents.graph.dates import dates
from libs.documents.graph.intervals import DATE, PERCENT, PLAIN, Interval
from libs.documents.numerals import han_number


@dataclass(frozen=True, slots=True)
class Value:
    """A number or date as written: `text[start:end]`."""

    interval: Interval  # one point, or the days of a date, month or year
    start: int
    end: int
    scale: int = 1  # 10 000 where it says 万


_SCALES: Final = {
    "十": 10, "百": 100, "千": 1000, "万": 10**4, "十万": 10**5, "百万": 10**6, "千万": 10**7,
    "亿": 10**8, "k": 1000, "thousand": 1000, "m": 10**6, "mn": 10**6, "million": 10**6,
    "bn": 10**9, "billion": 10**9,
}  # fmt: skip
_UNITS: Final = {
    "CNY": "元人民币|元|块钱|块|人民币|yuan|rmb|cny", "USD": "美元|美金|us dollars?|dollars?|usd",
    "EUR": "欧元|euros?|eur", "GBP": "英镑|pounds sterling|pounds?|gbp",
    "HKD": "港元|港币|hkd", "JPY": "日元|yen|jpy", PERCENT: "%|percent|per cent",
    "workday": "个?工作日|(?:business|working) days?", "hour": "个?小时|hours?",
    "day": "天|个?自然日|日|(?:calendar )?days?", "week": "周|个?星期|weeks?",
    "month": "个月|months?", "year": "年|years?",
    "person": "人|名(?:员工|职工|人员)?|people|persons?|employees",
}  # fmt: skip
_PREFIXES: Final = {
    "人民币": "CNY", "rmb": "CNY", "cny": "CNY", "¥": "CNY", "us$": "USD", "hk$": "HKD",
    "$": "USD", "usd": "USD", "eur": "EUR", "€": "EUR", "gbp": "GBP", "£": "GBP",
}  # fmt: skip
_IN_UNITS: Final = {"week": ("day", 7), "year": ("month", 12)}
_UNIT_OF: Final = [(unit, re.compile(names, re.IGNORECASE)) for unit, names in _UNITS.items()]

_NUMBER: Final = re.compile(
    r"(?=[\d$¥€£人零〇一二两三四五六七八九十百千万亿rcuehgRCUEHG])"
    r"(?P<prefix>人民币|(?:\b|(?<=[\u4e00-\u9fff]))(?:rmb|cny|usd|eur|gbp|us\$|hk\$)|[$¥€£])?[ ]?"
    r"(?:(?<![A-Za-z0-9_.#])(?<![A-Za-z]-)"
    r"(?P<digits>\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,6})?(?![\d,])|\d{1,3}(?:[ ]\d{3}){1,4}(?![ ]?\d)"
    r"|\d{1,15}(?:\.\d{1,6})?(?![\d.]*\d))"
    r"|(?P<han>[零〇一二两三四五六七八九十百千万亿]{1,14}))"
    r"(?:[ ]?(?P<scale>百万|千万|十万|[万亿千百十]|(?:thousand|million|billion|bn|mn|k|"
    r"m)(?![A-Za-z]))"
    r"(?P<lower>(?:(?<=亿)\d{1,4}万|(?<=万)(?:\d{3,4}|\d千)|(?<=千)\d百)(?![\d.,千百万亿]))?)?"
    r"(?:[ ]?(?P<unit>" + "|".join(_UNITS.values()) + r"))?(?P<glued>[A-Za-z_]|-[A-Za-z])?",
    re.IGNORECASE,
)
_ORDINAL: Final = re.compile(
    r"(?:第|\b(?:no|article|section|chapter|step|clause|item)\.?)[ ]?$", re.I
)
_CODE: Final = re.compile(r"(?!RMB|CNY|USD|EUR|GBP)[A-Z]{2}(?:/[A-Z])?[ -]?$")  # ISO 9001
# What is counted or measured in something that no bound here is about.
_OF_ANOTHER_KIND: Final = re.compile(
    r"[ ]?(?:‰|°|℃|个|次|份|台|辆|件|套|张|间|名|位|笔|批|户|家|岁|周岁|级|倍|分(?!别)|秒|米|平方|"
    r"立方|公里|千米|厘米|毫米|公斤|千克|克|吨|亩|度)|"
    r"[ ](?:times|items?|pages?|copies|units?|minutes?|seconds?|points?|k[gm]|[cm]m|[gmt]b|"
    r"square|met(?:er|re)s?|miles?|tons?|tonnes?)\b",
    re.IGNORECASE,
)
_SHARE: Final = re.compile(r"[百千万]分之[ ]?$")
_AFTER_ORDINAL: Final = re.compile(r"[ ]?(?:条|章|款|节|项|页|版|号|\.\d|[)、](?!\d))")


def values(text: str) -> list[Value]:
    """Every value in `text`, in order, none overlapping. `text` as `plain_width` makes it.

    Precision goes first: numbers that count or name something else (articles, versions, codes,
    bare years) are left out.
    """
    days = [Value(*found) for found in dates(text)]
    taken = {position for value in days for position in range(value.start, value.end)}
    numbers = [value for value in _numbers(text) if value.start not in taken]
    return sorted((*days, *numbers), key=lambda value: value.start)


def _numbers(text: str) -> Iterator[Value]:
    for match in _NUMBER.finditer(text):
        number = _number(match)
        if number is None or match["glued"] or _is_a_length(match):
            continue
        start = match.start("prefix" if match["prefix"] else "digits" if match["digits"] else "han")
        end = max(match.end(name) for name in ("digits", "han", "scale", "lower", "unit"))
        unit = _unit(match)
        if unit == PLAIN and _is_of_another_kind(text, start, end):
            continue
        if unit == PLAIN and not match["scale"] and _names_something(text, start, end, number):
            continue
        unit, times = _IN_UNITS.get(unit, (unit, 1))
        amount = number * times
        scale = _SCALES[match["scale"].lower()] if match["scale"] else 1
        yield Value(Interval(unit, amount, amount), start, end, scale)


def _is_of_another_kind(text: str, start: int, end: int) -> bool:
    measured = _OF_ANOTHER_KIND.match(text, end) is not None
    return measured or _SHARE.search(text, max(0, start - 4), start) is not None


def _is_a_length(match: re.Match[str]) -> bool:
    return (match["scale"] or "").lower() == "m" and not match["prefix"]


def _number(match: re.Match[str]) -> Decimal | None:
    scale = _SCALES[match["scale"].lower()] if match["scale"] else 1
    if match["digits"]:
        number = Decimal(match["digits"].replace(",", "").replace(" ", "")) * scale
        return number + _lower(match["lower"])
    # 一 and 十 are in many words: a Chinese numeral counts when a unit follows it.
    if not (match["unit"] or match["prefix"]):
        return None
    found = han_number(match["han"])
    return None if found is None else Decimal(found * scale)


def _lower(written: str | None) -> int:
    """5000万 of 1亿5000万, 5千 of 1万5千."""
    if not written:
        return 0
    scale = _SCALES.get(written[-1])
    return int(written) if scale is None else int(written[:-1]) * scale


def _unit(match: re.Match[str]) -> str:
    if match["prefix"]:
        return _PREFIXES[match["prefix"].lower()]
    if match["unit"]:
        return next(unit for unit, names in _UNIT_OF if names.fullmatch(match["unit"]))
    return PLAIN


def _names_something(text: str, start: int, end: int, number: Decimal) -> bool:
    if end - start == 4 and 1900 <= number <= 2100:
        return True
    before = text[max(0, start - 9) : start]
    return any((_ORDINAL.search(before), _CODE.search(before), _AFTER_ORDINAL.match(text, end)))


def like(value: Value, other: Value) -> Value:
    """A value that names no unit, or no scale, takes its neighbour's: 2-5万元 begins at 20 000."""
    mine, its = value.interval, other.interval
    if DATE in (mine.unit, its.unit) or mine.low is None:
        return value
    if PLAIN not in (mine.unit, its.unit) and mine.unit != its.unit:
        return value
    number = mine.low * (other.scale if value.scale == 1 and mine.low < 1000 else 1)
    return replace(value, interval=Interval(mine.unit or its.unit, number, number))
