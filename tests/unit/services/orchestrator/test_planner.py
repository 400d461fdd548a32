"""The deterministic planner as a whole: what becomes of a message."""

import pytest

from libs.contracts import ExecutionMode
from services.orchestrator.domain.planner import Decision, Situation, decide

FOUNDED = "When was Stellar Entertainment Holdings Ltd. established?"


def plan_of(text: str, previous: str | None = None, pending: str | None = None) -> Decision:
    return decide(Situation(text, previous=previous, pending=pending))


@pytest.mark.parametrize(
    ("text", "previous", "rewritten"),
    [
        ("Who is its director?", FOUNDED, "Who is Stellar Entertainment Holdings Ltd.'s director?"),
        (
            "How much dividends did it distribute in March 2017?",
            FOUNDED,
            "How much dividends did Stellar Entertainment Holdings Ltd. distribute in March 2017?",
        ),
        (
            "And in 2018?",
            "How much dividends did Stellar Ltd. distribute in March 2017?",
            "How much dividends did Stellar Ltd. distribute in March 2018?",
        ),
        ("What about Acme Corp?", FOUNDED, "When was Acme Corp established?"),
        ("How long does that policy last?", "What is the refund policy?", None),
        ("它的总部在哪里？", "国际移民组织的前身是什么？", "国际移民组织的总部在哪里？"),
        ("那2018年呢？", "2017年该公司的营收是多少？", "2018年该公司的营收是多少？"),
        ("那B产品呢？", "A产品的价格是多少？", "B产品的价格是多少？"),
        ("那重量呢？", "A产品的价格是多少？", "A产品的重量"),
        ("为什么？", "A产品的价格是多少？", "A产品的价格是多少，为什么？"),
        ("这个流程怎么走？", "退款审批流程是什么？", "退款审批流程怎么走？"),
    ],
)
def test_follow_up_is_completed_from_the_question_before(
    text: str, previous: str, rewritten: str | None
) -> None:
    plan = plan_of(text, previous).plan
    assert plan.execution_mode is ExecutionMode.RAG_CHAT
    if rewritten is None:
        assert "the refund policy" in plan.rewritten_question
    else:
        assert plan.rewritten_question == rewritten


@pytest.mark.parametrize(
    "text",
    [
        "Is it possible to get a refund after 30 days?",
        "How long does it take to get a refund?",
        "When did Acme Corp. pay its dividend?",
        "Who acquired the company that made Valkyria Chronicles III?",
        "其他部门的报销流程是什么？",
        "张三和他的团队做了什么？",
    ],
)
def test_question_that_explains_its_own_pronouns_is_left_alone(text: str) -> None:
    assert plan_of(text, FOUNDED).plan.rewritten_question == text


@pytest.mark.parametrize(
    "text",
    [
        "What is the refund limit?",
        "refund policy",
        "Why wasn't Valkyria Chronicles III released in the West?",
        "Who is the director of this movie and when was the movie made?",
        "第七届香港立法会议员宣誓仪式的时间",
        "2021年香港GDP增长了多少？",
        "退款规则是什么？",
        "《大学》是谁写的？",
        "谁写的《大学》",
    ],
)
def test_question_with_content_is_searched_unchanged(text: str) -> None:
    plan = plan_of(text).plan
    assert plan.execution_mode is ExecutionMode.RAG_CHAT
    assert plan.rewritten_question == text


@pytest.mark.parametrize(
    ("text", "language_mark"),
    [
        ("What is the limit?", "limit"),
        ("When was it founded?", "refer"),
        ("???", "know"),
        ("怎么配置？", "配置"),
        ("它的价格是多少？", "价格"),
        ("流程怎么走？", "流程"),
        ("多少？", "了解什么"),
    ],
)
def test_too_little_is_asked_back_in_the_same_language_and_kept(
    text: str, language_mark: str
) -> None:
    decision = plan_of(text)
    assert decision.plan.execution_mode is ExecutionMode.CLARIFY
    assert language_mark in (decision.plan.clarify_question or "")
    assert decision.pending == text


def test_unclear_question_of_a_running_conversation_is_completed_instead_of_asked_back() -> None:
    plan = plan_of("What is the limit?", "How do refunds of Acme Corp. work?").plan
    assert plan.execution_mode is ExecutionMode.RAG_CHAT
    assert "Acme Corp." in plan.rewritten_question
    assert "limit" in plan.rewritten_question


@pytest.mark.parametrize(
    ("answer", "pending", "completed"),
    [
        ("March", "What is the deadline?", "What is the deadline (March)?"),
        ("of the refund policy", "What is the limit?", "What is the limit (of the refund policy)?"),
        ("三月", "报销的截止日期是？", "报销的截止日期是（三月）？"),
        ("MinIO 对象存储", "怎么配置？", "怎么配置（MinIO 对象存储）？"),
    ],
)
def test_answer_completes_the_pending_question(answer: str, pending: str, completed: str) -> None:
    decision = plan_of(answer, pending=pending)
    assert decision.plan.execution_mode is ExecutionMode.RAG_CHAT
    assert decision.plan.rewritten_question == completed
    assert decision.pending is None


def test_unclear_answer_to_a_clarification_is_not_asked_back_again() -> None:
    decision = plan_of("the limit", pending="What is the price?")
    assert decision.plan.execution_mode is ExecutionMode.RAG_CHAT


def test_new_question_replaces_the_pending_one() -> None:
    question = "Who approves refunds of Acme Corp.?"
    decision = plan_of(question, pending="What is the deadline?")
    assert decision.plan.rewritten_question == question
    assert decision.pending is None


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Hello!", "Hello"),
        ("hi there", "Hello"),
        ("thank you very much", "welcome"),
        ("What can you do?", "documents"),
        ("你好！", "您好"),
        ("谢谢", "不客气"),
        ("你是谁？", "文档"),
    ],
)
def test_courtesies_are_answered_and_keep_what_was_pending(text: str, reply: str) -> None:
    decision = plan_of(text, pending="What is the deadline?")
    assert decision.plan.execution_mode is ExecutionMode.CLARIFY
    assert reply in (decision.plan.clarify_question or "")
    assert decision.pending == "What is the deadline?"


@pytest.mark.parametrize("text", ["hello world program output", "Who are you working with?"])
def test_question_that_starts_like_a_courtesy_is_searched(text: str) -> None:
    assert plan_of(text).plan.execution_mode is ExecutionMode.RAG_CHAT


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "What is the refund limit and how does approval work?",
            ["What is the refund limit", "how does approval work?"],
        ),
        (
            "What is the refund limit? Who approves it?",
            ["What is the refund limit?", "Who approves the refund limit?"],
        ),
        ("退款规则是什么，审批流程怎么走？", ["退款规则是什么", "审批流程怎么走？"]),
        (
            "退款规则是什么？另外报销截止到几号？",
            ["退款规则是什么？", "报销截止到几号？"],
        ),
    ],
)
def test_compound_question_is_split(text: str, parts: list[str]) -> None:
    assert plan_of(text).plan.sub_questions == parts


@pytest.mark.parametrize(
    "text",
    [
        "Which companies did Acme and Stellar acquire?",
        "In 2017, what was the revenue?",
        "What is the difference between rule A and rule B?",
        "公司的成立时间和注册资本是多少？",
        "在2017年的报告中，营收是多少？",
        "Who wrote the report, and why?",
        "".join(f"What is thing{i}? " for i in range(6)),
    ],
)
def test_question_whose_parts_cannot_stand_alone_stays_whole(text: str) -> None:
    assert plan_of(text).plan.sub_questions == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("根据产品手册，MinIO 怎么配置？", ["产品手册"]),
        ("In the finance documents, who was the CEO of Acme?", ["finance"]),
        ("How does the finance director approve refunds?", []),
        ("金融公司的营收是多少？", []),
    ],
)
def test_domains_narrow_only_where_the_question_says_so(text: str, named: list[str]) -> None:
    decision = decide(Situation(text, domains=["产品手册", "finance", "law", "金融"]))
    assert decision.plan.knowledge_domains == named


def test_any_text_gets_a_valid_bounded_plan() -> None:
    for text in ("", "   ", "?" * 50, "a" * 100_000, "好" * 100_000, "\n\t\x00", "🙂"):
        plan = plan_of(text, pending="What is the limit?").plan
        assert 0 < len(plan.rewritten_question) <= 2_000
