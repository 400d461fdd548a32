"""Names are found by closed rules, with one key for all spellings in both languages."""

import pytest

from libs.documents.graph import extract, names


def ids(text: str) -> list[str]:
    return [name.id for name in names(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "子公司单笔报销须经母公司财务总监审批",
            [
                "organisation:subsidiary",
                "activity:reimbursement",
                "organisation:parent company",
                "role:finance director",
            ],
        ),
        (
            "Subsidiaries' reimbursements: ask the parent company's Finance Director.",
            [
                "organisation:subsidiary",
                "activity:reimbursement",
                "organisation:parent company",
                "role:finance director",
            ],
        ),
        ("由品牌运营部负责", ["department:品牌运营部"]),
        ("财务部经理审核", ["role:finance manager"]),
        (
            "填写《差旅费报销单》并提交财务部",
            ["form:差旅费报销单", "department:finance department"],
        ),
        (
            "原告北京某某科技有限公司与被告上海某某有限公司",
            ["organisation:北京某某科技有限公司", "organisation:上海某某有限公司"],
        ),
        ("Form W-9 of Acme Widgets Inc.", ["form:form w-9", "organisation:acme widgets inc"]),
        ("Head of Finance or a line manager", ["role:head of finance", "role:line manager"]),
    ],
)
def test_names_meet_by_key(text: str, expected: list[str]) -> None:
    assert ids(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "会计准则与部分处理、科学和中心思想",
        "businesses, classes and departments of nature",
        "他在有限公司里工作",
        "The sun rises in the east. It heads west.",
        "外表、表示与单位",
    ],
)
def test_ordinary_words_are_no_names(text: str) -> None:
    assert ids(text) == []


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("第三条 差旅费是指员工因公出差产生的费用。", ["差旅费"]),
        ("本办法所称“重大合同”，是指金额超过一百万元的合同。", ["重大合同"]),
        ("“Remote work” means working from home.", ["Remote work"]),
        ("Overtime means hours above 40 hours a week.", ["Overtime"]),
        ("This means that nothing is paid. It refers to nothing.", []),
        ("这是指什么？也就是指明方向。", []),
    ],
)
def test_defined_terms_are_found_where_they_are_defined(text: str, terms: list[str]) -> None:
    found = [name for name in extract(text).names if name.kind == "term"]
    assert [text[name.start : name.end] for name in found] == terms
