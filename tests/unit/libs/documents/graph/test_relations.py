"""Who approves what under which conditions, as the text says it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.documents.graph import Condition, Extraction, Name, Relation, Verb, extract
from tests.unit.libs.documents.graph.test_conditions import shown

DIRECTOR = "role:finance director"
MANAGER = "role:general manager"


def approvals(text: str, *headings: str) -> list[tuple[set[str], str, list[str]]]:
    """(subjects, approver, conditions) of each."""
    found = extract(text, headings=headings).relations
    return [
        (set(each.subjects), each.objects[0], [shown(c) for c in each.conditions])
        for each in found
        if each.verb is Verb.APPROVES
    ]


ABOVE = ({"organisation:subsidiary", "activity:reimbursement"}, DIRECTOR, ["CNY (20000, ]"])
UP_TO = ({"organisation:subsidiary", "activity:reimbursement"}, MANAGER, ["CNY [, 20000]"])


@pytest.mark.parametrize(
    "text",
    [
        "子公司单笔报销金额超过两万元的，须经母公司财务总监审批；不超过两万元的，由子公司总经理审批。",
        "子公司报销超过2万元的须经母公司财务总监批准，2万元及以下的由子公司总经理批准。",
        "Subsidiaries' reimbursements above 20,000 yuan must be approved by the parent company's "
        "finance director, and those up to 20,000 yuan by the subsidiary's general manager.",
        "A subsidiary's reimbursement needs approval by the finance director of the parent company "
        "if it exceeds 20 000 yuan; reimbursements of no more than 20 000 yuan are approved by the "
        "general manager.",
    ],
)
def test_two_rules_in_one_sentence_keep_their_own_bound_and_approver(text: str) -> None:
    assert approvals(text) == [ABOVE, UP_TO]


def test_a_heading_says_what_a_rule_is_about() -> None:
    assert approvals("超过两万元的，须经母公司财务总监审批。", "子公司费用报销") == [ABOVE]
    assert approvals("超过两万元的，须经母公司财务总监审批。") == []  # of what? nothing is made up


@pytest.mark.parametrize(
    "text",
    ["500元以下的报销无需财务总监审批。", "Reimbursements are paid without approval by the CFO."],
)
def test_what_is_denied_is_no_approval(text: str) -> None:
    assert approvals(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "总经理不审批报销。",
        "总经理不同意采购。",
        "总经理不予批准报销。",
        "财务部不负责采购。",
        "报销办法不适用于子公司。",
        "报销办法不再适用于子公司。",
        "财务经理不向总经理汇报。",
        "The CFO doesn't approve reimbursements.",
        "The CFO cannot approve reimbursements.",
        "The reimbursement form doesn't apply to subsidiaries.",
    ],
)
def test_what_is_denied_is_no_relation(text: str) -> None:
    assert extract(text).relations == []


def test_without_an_approval_is_a_condition_of_something_else() -> None:
    [(about, who, _)] = approvals("未经财务总监批准的报销不予支付。")
    assert ("activity:reimbursement" in about, who) == (True, DIRECTOR)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("采购经理向财务总监汇报工作。", (Verb.REPORTS_TO, "role:采购经理", DIRECTOR)),
        (
            "The procurement manager reports to the finance director.",
            (Verb.REPORTS_TO, "role:procurement manager", DIRECTOR),
        ),
        ("差旅标准适用于子公司。", (Verb.APPLIES_TO, "activity:travel", "organisation:subsidiary")),
        (
            "The travel policy applies to subsidiaries.",
            (Verb.APPLIES_TO, "activity:travel", "organisation:subsidiary"),
        ),
        (
            "财务部负责预算编制。",
            (Verb.RESPONSIBLE, "activity:budget", "department:finance department"),
        ),
    ],
)
def test_other_relations_point_the_right_way(text: str, expected: tuple[Verb, str, str]) -> None:
    (found,) = extract(text).relations
    assert (found.verb, found.subjects[0], found.objects[0]) == expected


def test_a_bound_without_a_verb_limits_what_it_is_about() -> None:
    (found,) = extract("员工年假不少于5天。").relations
    assert (found.verb, found.subjects, found.objects) == (
        Verb.LIMITED,
        ("activity:annual leave",),
        (),
    )


_PIECES = st.sampled_from(
    [
        "子公司",
        "母公司",
        "财务总监",
        "总经理",
        "报销",
        "超过",
        "不超过",
        "两万元",
        "20,000",
        "2万",
        "元",
        "以上",
        "以下",
        "（不含）",
        "至",
        "，",
        "；",
        "。",
        "审批",
        "适用于",
        "汇报",
        "是指",
        "“",
        "”",
        "《",
        "》",
        "2024年",
        "1月",
        "1日",
        "起",
        "subsidiary",
        "finance",
        "director",
        "must",
        "be",
        "approved",
        "by",
        "above",
        "up",
        "to",
        "between",
        "and",
        "$",
        "5k",
        "%",
        ",",
        ".",
        ";",
        "reports",
        "means",
        "第",
        "条",
        "１",
        "，",
        "¥",
        "(",
        ")",
        "-",
        "~",
        "一",
        "十",
        "亿",
        "İ",
        "\n",
        " ",
        "\u3000",
        "\ud7ff",
    ]
)
_TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(_PIECES, max_size=60).map("".join),
    st.lists(_PIECES, max_size=60).map(" ".join),
)


@given(text=_TEXTS, heading=_TEXTS)
def test_any_text_is_read_and_every_span_is_exact(text: str, heading: str) -> None:
    found = extract(text, headings=[heading])
    for each in spanned(found):
        assert 0 <= each.start < each.end <= len(text)
        assert text[each.start : each.end].strip()
    for condition in found.conditions:
        assert not condition.interval.is_empty
        assert re.search(
            r"[\d零〇一二三四五六七八九十百千万亿两]", text[condition.start : condition.end]
        )
    for relation in found.relations:
        for condition in relation.conditions:
            assert relation.start <= condition.start < condition.end <= relation.end


@given(st.lists(_PIECES, max_size=40).map("".join))
def test_a_paragraph_is_read_the_same_wherever_it_stands(text: str) -> None:
    """So the time for a text is the sum over its paragraphs: no rule looks further."""
    text = re.sub(r"\s+", " ", text).strip()
    alone, behind = extract(text), extract(f"{_FILLER}{text}")
    assert _shapes(behind, len(_FILLER)) == _shapes(alone, 0)


def spanned(found: Extraction) -> list[Name | Condition | Relation]:
    return [*found.names, *found.conditions, *found.relations]


_FILLER = "Nothing to be found here.\n\n" * 50


def _shapes(found: Extraction, offset: int) -> list[tuple[object, ...]]:
    spans: list[tuple[object, ...]] = []
    for each in spanned(found):
        what = each.verb if isinstance(each, Relation) else type(each).__name__
        spans.append((what, each.start - offset, each.end - offset))
    return spans
