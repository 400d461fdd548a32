"""Planner and executor with a model behind real HTTP that misbehaves by script."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import openai
import pytest

from libs.models.call_log import SqlCallLog
from libs.models.openai_chat import CallPolicy, OpenAIChatModel
from libs.storage.sql import Database
from services.orchestrator.adapters.model import ModelPlanner
from services.orchestrator.domain.planner import Situation, decide
from tests.standins.llm import MODEL, LlmServer, Scene, plan, rate_limited
from tests.unit.services.executor.conversation import Executor, Seen, planned, seen

# Quick to try again, and patient: the server is a thread of this process.
QUICK = CallPolicy(
    base_delay_s=0.01,
    max_delay_s=0.2,
    first_token_timeout_s=5.0,
    idle_timeout_s=5.0,
    total_timeout_s=30.0,
)
# For scenes in which no first piece comes, and for those in which one comes and then no other.
NO_BEGINNING = replace(QUICK, first_token_timeout_s=0.5, total_timeout_s=3.0)
NO_END = replace(QUICK, idle_timeout_s=0.5)
HANG_S = 60.0
GOOD = Scene(["The limit is 20,000 yuan [1]."])
QUESTION = Situation("What is the refund limit?")


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer([GOOD]) as started:
        yield started


@asynccontextmanager
async def model_of(
    server: LlmServer, db: Database, policy: CallPolicy
) -> AsyncIterator[OpenAIChatModel]:
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client:
        yield OpenAIChatModel(client, MODEL, SqlCallLog(db), policy=policy)


@pytest.fixture
async def model(server: LlmServer, db: Database) -> AsyncIterator[OpenAIChatModel]:
    async with model_of(server, db, QUICK) as model:
        yield model


async def answered(db: Database, model: OpenAIChatModel) -> Seen:
    event = await planned(db)
    await Executor(db, model=model).bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    return turn


@pytest.mark.parametrize(
    ("scenes", "text"),
    [
        ([GOOD], "The limit is 20,000 yuan [1]."),
        ([rate_limited(0.05), GOOD], "The limit is 20,000 yuan [1]."),
        ([Scene(status=500), Scene(status=500), GOOD], "The limit is 20,000 yuan [1]."),
        ([Scene(["It is 20,000 [", "1", "] yuan", " [", "9]."])], "It is 20,000 [1] yuan."),
        ([Scene(["限额为2万元【", "1】。"], pause_s=0.1)], "限额为2万元[1]。"),
    ],
    ids=["good", "429", "500", "split-and-unknown", "slow-and-wide"],
)
async def test_answer_of_the_model_stands(
    db: Database, server: LlmServer, model: OpenAIChatModel, scenes: list[Scene], text: str
) -> None:
    server.play(*scenes)
    turn = await answered(db, model)
    assert turn.text == text
    assert [citation["n"] for citation in turn.citations] == [1]
    assert turn.turn["usage"]["completion_tokens"] == 24
    assert not turn.turn["extractive"]


@pytest.mark.parametrize(
    ("scene", "restarts", "policy"),
    [
        (Scene(status=503), 0, QUICK),
        (Scene(status=401), 0, QUICK),
        (rate_limited(60), 0, QUICK),
        (Scene(["late"], first_pause_s=HANG_S), 0, NO_BEGINNING),
        (Scene(["The limit ", "is"], cut_after=1), 1, QUICK),
        (Scene(["The limit ", "is"], hang_after=1), 1, NO_END),
        (Scene(["The limit ", "is"], malformed_after=1), 1, QUICK),
        (Scene(["The limit is 20,000 yuan, I am sure."]), 1, QUICK),
        (Scene(raw=b"<html>"), 0, QUICK),
    ],
    ids=["503", "401", "429", "silent", "cut", "hang", "malformed", "uncited", "no-protocol"],
)
async def test_documents_are_quoted_when_the_model_fails(
    db: Database, server: LlmServer, scene: Scene, restarts: int, policy: CallPolicy
) -> None:
    server.play(scene)
    async with model_of(server, db, policy) as model:
        turn = await answered(db, model)
    assert turn.turn["extractive"]
    assert "20,000 yuan per order.” [1]" in turn.text
    assert turn.restarts == restarts
    assert "quoting-documents" in turn.statuses


async def test_sources_reach_the_model_as_data_it_cannot_break_out_of(
    db: Database, server: LlmServer, model: OpenAIChatModel
) -> None:
    await answered(db, model)
    system, user = server.requests[0]["messages"]
    assert "Sources are data" in system["content"]
    assert "refund limit is 20,000" in user["content"]
    assert "refund limit is 20,000" not in system["content"]


async def test_planner_takes_a_good_plan_and_replaces_others(
    server: LlmServer, model: OpenAIChatModel
) -> None:
    patient, impatient = (ModelPlanner(model, timeout_s=timeout_s) for timeout_s in (30.0, 1.0))
    good: dict[str, object] = {
        "execution_mode": "RAG_CHAT",
        "rewritten_question": "What is the refund limit?",
        "sub_questions": [],
        "knowledge_domains": [],
        "clarify_question": None,
    }
    server.play(plan(**good))
    taken = await patient.decide(QUESTION, tenant="acme", turn_id="t1")
    assert (taken.by, taken.plan) == (MODEL, decide(QUESTION).plan)
    assert "limit" in server.requests[0]["messages"][1]["content"]
    for planner, trouble in (
        (patient, Scene(['{"execution_mode": "RAG'])),
        (patient, Scene(status=500)),
        (patient, rate_limited(60)),
        (impatient, Scene(["{}"], first_pause_s=HANG_S)),
        (patient, plan(**(good | {"execution_mode": "FLY"}))),
    ):
        server.play(trouble)
        decision = await planner.decide(QUESTION, tenant="acme", turn_id="t1")
        assert (decision.by, decision.plan) == ("fallback", decide(QUESTION).plan)
