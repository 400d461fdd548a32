"""Whether a question's numbers fit a rule's conditions."""

import pytest

from libs.documents.graph import Fit, conditions, fit


@pytest.mark.parametrize(
    ("question", "rule", "expected"),
    [
        ("报销35000元", "超过20000元", Fit.SATISFIED),
        ("报销3.5万元", "不超过两万元", Fit.CONTRADICTED),
        ("报销8000元", "超过20000元", Fit.CONTRADICTED),
        ("报销20000元", "超过20000元", Fit.CONTRADICTED),
        ("报销20000元", "20000元及以下", Fit.SATISFIED),
        ("报销20000元", "20000元以上", Fit.SATISFIED),
        ("报销20000元", "不足20000元", Fit.CONTRADICTED),
        ("35,000 in expenses", "超过20000元", Fit.SATISFIED),  # a bare number may be any money
        ("$35,000", "超过20000元", Fit.UNRELATED),
        ("超过两万元的报销", "两万元以上", Fit.SATISFIED),
        ("两万元以上的报销", "超过两万元", Fit.SATISFIED),
        ("两万元以上的报销", "不超过两万元", Fit.CONTRADICTED),
        ("1万到3万元的报销", "超过两万元", Fit.PARTLY),
        ("3天的假", "超过20000元", Fit.UNRELATED),
        ("2023年的报销", "自2024年1月1日起", Fit.CONTRADICTED),
        ("2024年5月的报销", "自2024年1月1日起", Fit.SATISFIED),
        ("报销35000元", "每次20000元", Fit.UNRELATED),  # what a rule grants is no bound
    ],
)
def test_a_questions_numbers_are_held_against_a_rules(
    question: str, rule: str, expected: Fit
) -> None:
    assert fit(conditions(question), conditions(rule)) is expected


def test_one_bound_that_is_missed_outweighs_another_that_is_met() -> None:
    rule = conditions("自2024年1月1日起，超过20000元")
    assert fit(conditions("2023年报销35000元"), rule) is Fit.CONTRADICTED


@pytest.mark.parametrize(
    "text",
    ["不超过3次", "不超过5‰", "百分之5以下", "满18周岁", "超过50平方米", "at most 3 times"],
)
def test_numbers_of_things_that_have_no_unit_here_bound_no_money(text: str) -> None:
    assert fit(conditions("报销20000元"), conditions(text)) is Fit.UNRELATED
