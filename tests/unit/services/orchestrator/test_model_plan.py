"""A model's plan is taken as far as the rules allow, and replaced where they do not."""

import asyncio
from typing import Any

import pytest

from libs.contracts import ExecutionMode
from libs.kernel import PermanentError
from libs.models.ports import ModelUnavailableError
from services.orchestrator.adapters.model import ModelPlanner
from services.orchestrator.domain.model_plan import MalformedPlanError, checked, messages, schema
from services.orchestrator.domain.planner import Situation, decide
from tests.fakes_answering import FakeChatModel

TALK = Situation(
    "Who is its director?",
    previous="When was Acme Corp. founded?",
    recent=[("When was Acme Corp. founded?", "In 1998 [1].")],
    domains=["finance", "law"],
)


def answer(rewritten: str, **fields: Any) -> dict[str, object]:
    base: dict[str, object] = {
        "execution_mode": "RAG_CHAT",
        "rewritten_question": rewritten,
        "sub_questions": [],
        "knowledge_domains": [],
        "clarify_question": None,
    }
    return base | fields


def test_good_plan_is_taken() -> None:
    decision = checked(
        answer("Who is the director of Acme Corp.?", knowledge_domains=["law", "made up"]),
        TALK,
        "m",
    )
    assert decision.plan.rewritten_question == "Who is the director of Acme Corp.?"
    assert decision.plan.knowledge_domains == ["law"]
    assert (decision.by, decision.note) == ("m", "")


@pytest.mark.parametrize(
    ("rewritten", "text", "note"),
    [
        ("What is your question?", "What is the refund limit?", "rewrite-lost-terms"),
        ("", "What is the refund limit?", "rewrite-empty-or-long"),
        ("x" * 600, "What is the refund limit?", "rewrite-empty-or-long"),
        (
            "What was Acme's net revenue?",
            "What was Acme's net revenue in 2017?",
            "rewrite-lost-numbers",
        ),
        ("What was the revenue in 2018?", "What was the revenue?", "rewrite-invented-numbers"),
        (
            "What is the refund limit of enterprise customers who subscribed to premium hosting?",
            "What is the refund limit?",
            "rewrite-invented-terms",
        ),
        ("您的问题是什么？", "退款上限是多少？", "rewrite-lost-terms"),
    ],
)
def test_rewrite_that_changes_the_question_is_refused(rewritten: str, text: str, note: str) -> None:
    decision = checked(answer(rewritten), Situation(text), "m")
    assert decision.plan.rewritten_question == text
    assert note in decision.note


def test_refused_rewrite_leaves_the_rules_rewrite() -> None:
    decision = checked(answer("What is your question?"), TALK, "m")
    assert decision.plan.rewritten_question == "Who is Acme Corp.'s director?"


def test_parts_must_stand_alone_and_belong_to_the_question() -> None:
    situation = Situation("What is the refund limit and how does approval work?")
    parts = ["What is the refund limit?", "How does approval work?"]
    good = checked(answer(situation.text, sub_questions=parts), situation, "m")
    assert good.plan.sub_questions == parts
    foreign = ["What is the refund limit?", "Which planets have rings?"]
    refused = checked(answer(situation.text, sub_questions=foreign), situation, "m")
    assert refused.plan.sub_questions == decide(situation).plan.sub_questions
    assert "split-refused" in refused.note
    many = [f"What is the refund limit {'of ' * i}?" for i in range(6)]
    assert (
        "split-refused" in checked(answer(situation.text, sub_questions=many), situation, "m").note
    )


def test_asking_back_is_for_thin_questions_and_happens_once() -> None:
    ask = {"execution_mode": "CLARIFY", "clarify_question": "Which policy do you mean?"}
    thin = Situation("refund policy")
    decision = checked(answer(thin.text, **ask), thin, "m")
    assert decision.plan.execution_mode is ExecutionMode.CLARIFY
    assert decision.pending == "refund policy"

    rich = Situation("When did Stellar Entertainment acquire the studio XYZ Films in 2017?")
    assert checked(answer(rich.text, **ask), rich, "m").plan.execution_mode is not (
        ExecutionMode.CLARIFY
    )
    again = Situation("the refund", pending="What is the policy?")
    assert checked(answer("What is the policy (the refund)?", **ask), again, "m").plan == (
        decide(again).plan
    )
    foreign = Situation("退款政策")
    assert checked(answer("退款政策", **ask), foreign, "m").plan.execution_mode is not (
        ExecutionMode.CLARIFY
    )


def test_question_without_content_is_asked_back_whatever_the_model_says() -> None:
    empty = Situation("What is the limit?")
    decision = checked(answer("What is the limit?"), empty, "m")
    assert decision.plan.execution_mode is ExecutionMode.CLARIFY


def test_agents_that_do_not_exist_are_not_chosen() -> None:
    decision = checked(
        answer("What is the refund limit?", execution_mode="REACT_AGENT"),
        Situation("What is the refund limit?"),
        "m",
    )
    assert decision.plan.execution_mode is ExecutionMode.RAG_CHAT


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"execution_mode": "RAG_CHAT"},
        answer("x", sub_questions="What?"),
        answer("x", sub_questions=[1]),
        answer("x", execution_mode="DANCE"),
        answer("x", clarify_question={"a": 1}),
        answer("x", rewritten_question=None),
    ],
)
def test_malformed_answers_are_told_apart(broken: dict[str, object]) -> None:
    with pytest.raises(MalformedPlanError):
        checked(broken, TALK, "m")


def test_schema_bounds_every_string_and_list() -> None:
    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("type") == "string":
                assert "maxLength" in node or "enum" in node
            if node.get("type") == "array":
                assert "maxItems" in node
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(schema(["finance"]))
    walk(schema([]))


def test_prompt_is_bounded() -> None:
    huge = Situation("q" * 100_000, summary="s" * 50_000, recent=[("a" * 9_000, "b" * 9_000)] * 4)
    assert sum(len(m.content) for m in messages(huge)) < 12_000


async def decided(model: FakeChatModel, situation: Situation) -> tuple[str, str]:
    planner = ModelPlanner(model, timeout_s=0.2)
    decision = await planner.decide(situation, tenant="acme", turn_id="t1")
    assert decision.plan == decide(situation).plan
    return decision.by, decision.note


@pytest.mark.parametrize(
    ("failure", "note"),
    [
        (ModelUnavailableError("rate-limited", "HTTP 429"), "model-rate-limited"),
        (ModelUnavailableError("malformed", "no JSON"), "model-malformed"),
        (PermanentError("model-refused", "HTTP 401"), "model-refused"),
        ({"execution_mode": "?"}, "model-malformed"),
    ],
)
async def test_rules_plan_when_the_model_cannot(
    failure: Exception | dict[str, object], note: str
) -> None:
    assert await decided(FakeChatModel(plan=failure), TALK) == ("fallback", note)


class HangingModel(FakeChatModel):
    async def complete_json(self, *args: Any, **kwargs: Any) -> dict[str, object]:
        await asyncio.Event().wait()
        raise AssertionError


async def test_slow_model_is_not_waited_for() -> None:
    assert await decided(HangingModel(), TALK) == ("fallback", "model-timeout")


async def test_courtesies_cost_no_model_call() -> None:
    model = FakeChatModel()
    await decided(model, Situation("Hello!"))
    assert model.prompts == []
