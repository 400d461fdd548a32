"""Numbers and dates with what is said about them."""

from datetime import date
from decimal import Decimal

import pytest

from libs.documents.graph import Condition, Interval, conditions


def shown(condition: Condition) -> str:
    """`CNY (20000, 50000]`; a missing bound is empty."""
    i = condition.interval
    low, high = ("" if end is None else f"{end.normalize():f}" for end in (i.low, i.high))
    return (
        f"{i.unit} {'(' if i.low_open else '['}{low}, {high}{')' if i.high_open else ']'}".strip()
    )


def only(text: str) -> Condition:
    (found,) = conditions(text)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("超过20000元", "CNY (20000, ]"),
        ("超过20 000元", "CNY (20000, ]"),
        ("高于2万元", "CNY (20000, ]"),
        ("两万元以上", "CNY [20000, ]"),
        ("两万元（不含）以上", "CNY (20000, ]"),
        ("20000元以上（含）", "CNY [20000, ]"),
        ("20,000元及以下", "CNY [, 20000]"),
        ("不超过两万元", "CNY [, 20000]"),
        ("不得超过人民币3.5万元", "CNY [, 35000]"),
        ("5000元以内", "CNY [, 5000]"),
        ("不足3.5万元", "CNY [, 35000)"),
        ("低于一百二十万元", "CNY [, 1200000)"),
        ("至少三千五百元", "CNY [3500, ]"),
        ("2万元以上5万元以下", "CNY [20000, 50000]"),
        ("超过5000元但不超过20000元", "CNY (5000, 20000]"),
        ("5000元（不含）至2万元（含）", "CNY (5000, 20000]"),
        ("2-5万元", "CNY [20000, 50000]"),
        ("超过￥８，０００", "CNY (8000, ]"),
        ("3个工作日内", "workday [, 3]"),
        ("满三年", "month [36, ]"),
        ("两周以内", "day [, 14]"),
        ("不低于30%", "% [30, ]"),
        ("至少三名员工", "person [3, ]"),
        ("above 20 000", "[20000, ]".replace("[", "(")),
        ("exceeding $20,000.50", "USD (20000.5, ]"),
        ("over 20k", "(20000, ]"),
        ("more than EUR 1.5 million", "EUR (1500000, ]"),
        ("up to and including USD 5k", "USD [, 5000]"),
        ("do not exceed £300", "GBP [, 300]"),
        ("no more than 20,000 yuan", "CNY [, 20000]"),
        ("below 5,000 dollars", "USD [, 5000)"),
        ("at least 10 employees", "person [10, ]"),
        ("20,000 yuan or more", "CNY [20000, ]"),
        ("20,000 yuan or less", "CNY [, 20000]"),
        ("between 5 000 and 20 000 yuan", "CNY [5000, 20000]"),
        ("from 5,000 to 10,000 yuan", "CNY [5000, 10000]"),
        ("$3-5 million", "USD [3000000, 5000000]"),
        ("within 5 business days", "workday [, 5]"),
    ],
)
def test_a_bound_is_read_with_its_unit_and_its_ends(text: str, expected: str) -> None:
    found = only(text)
    assert shown(found) == expected
    assert found.compared
    assert text[found.start : found.end] == text


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        ("子公司报销3.5万元由谁审批？", "CNY [35000, 35000]", "3.5万元"),
        ("Who approves 35 000 yuan?", "CNY [35000, 35000]", "35 000 yuan"),
        ("exactly 20 000", "[20000, 20000]", "20 000"),
        ("比例为35%", "% [35, 35]", "35%"),
    ],
)
def test_a_value_that_stands_alone_is_a_point(text: str, expected: str, written: str) -> None:
    found = only(text)
    assert (shown(found), found.compared) == (expected, False)
    assert text[found.start : found.end] == written


@pytest.mark.parametrize(
    "text",
    [
        "第3条 本办法第二章",
        "version 2.0.1",
        "A-2031",
        "GB/T 19001-2016",
        "ISO 9001",
        "一般情况下万一十分",
        "article 12",
        "1.2.3.4",
        "99999999999999999999",
        "wide 5 m",
        "2024",
    ],
)
def test_what_names_or_numbers_something_is_no_value(text: str) -> None:
    assert conditions(text) == []


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("自2024年1月1日起", date(2024, 1, 1), None),
        ("2024年2月以前", None, date(2024, 2, 1)),
        ("2023年", date(2023, 1, 1), date(2023, 12, 31)),
        ("since 2024", date(2024, 1, 1), None),
        ("before 2023-05-06", None, date(2023, 5, 6)),
        ("by 5 March 2024", None, date(2024, 3, 5)),
        ("February 2024", date(2024, 2, 1), date(2024, 2, 29)),
        ("2024年1月1日至2024年6月30日", date(2024, 1, 1), date(2024, 6, 30)),
    ],
)
def test_dates_are_days(text: str, low: date | None, high: date | None) -> None:
    interval = only(text).interval
    ends = [
        None if end is None else date.fromordinal(int(end)) for end in (interval.low, interval.high)
    ]
    assert (interval.unit, *ends) == ("date", low, high)


def test_a_date_that_does_not_exist_is_none() -> None:
    assert [each for each in conditions("2024年2月31日") if each.interval.unit == "date"] == []


def test_an_empty_band_is_none() -> None:
    assert Interval("", Decimal(5), Decimal(5), low_open=True).is_empty


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("未达到2万元", "< 20000"),
        ("没有达到2万元", "< 20000"),
        ("未低于2万元", ">= 20000"),
        ("不宜超过2万元", "<= 20000"),
        ("没超过2万元", "<= 20000"),
        ("不允许超过2万元", "<= 20000"),
        ("严禁超过5天", "<= 5"),
        ("cannot exceed $5,000", "<= 5000"),
        ("doesn't exceed $5,000", "<= 5000"),
        ("must never exceed $5,000", "<= 5000"),
        ("not in excess of $5,000", "<= 5000"),
        ("should not be more than $5,000", "<= 5000"),
        ("must not be less than 5 days", ">= 5"),
        ("no larger than $5,000", "<= 5000"),
        ("no smaller than 5 days", ">= 5"),
        ("不早于2024年1月1日", ">= 738886"),
        ("不晚于2024年1月1日", "<= 738886"),
        ("not before 2024-01-01", ">= 738886"),
        ("not after 2024-01-01", "<= 738886"),
        ("not until 2024-01-01", ">= 738886"),
    ],
)
def test_a_comparator_that_is_denied_is_turned_round(text: str, expected: str) -> None:
    assert _bound(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("大于等于2万元", ">= 20000"),
        ("达到或超过2万元", ">= 20000"),
        ("小于或等于2万元", "<= 20000"),
        ("超过（含）2万元", ">= 20000"),
        ("greater than or equal to $5,000", ">= 5000"),
        ("less than or equal to 10 days", "<= 10"),
        ("meets or exceeds $5,000", ">= 5000"),
    ],
)
def test_or_equal_includes_the_number(text: str, expected: str) -> None:
    assert _bound(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("不超过1万5千元", "<= 15000"),
        ("不超过1万5000元", "<= 15000"),
        ("1亿5000万元以上", ">= 150000000"),
    ],
)
def test_a_number_in_two_scales_is_one(text: str, expected: str) -> None:
    assert _bound(text) == expected


def test_a_mark_of_one_sign_stands_within_a_range() -> None:
    [band] = conditions("50万元（含）-100万元（不含）")
    assert band.interval == Interval("CNY", Decimal(500000), Decimal(1000000), high_open=True)


def test_and_less_than_belongs_to_the_number_behind_it() -> None:
    first, second = conditions("more than 5 and less than 10 days")
    assert (first.interval.low, first.interval.high) == (Decimal(5), None)
    assert (second.interval.low, second.interval.high) == (None, Decimal(10))


def _bound(text: str) -> str:
    [found] = conditions(text)
    assert found.compared
    interval = found.interval
    if interval.low is not None:
        assert interval.high is None
        return f"{'>' if interval.low_open else '>='} {interval.low}"
    return f"{'<' if interval.high_open else '<='} {interval.high}"
