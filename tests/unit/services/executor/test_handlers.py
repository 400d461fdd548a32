"""Answering turns: the events, the answer's grounds, and one end to each."""

import asyncio
from collections.abc import Sequence

import pytest

from libs.contracts import ConversationExecutionPlan, ExecutionMode, TurnControl, TurnPlanned
from libs.eventbus import Failure, Policies, RetryPolicy
from libs.kernel import PermanentError, TransientError
from libs.models.ports import ModelUnavailableError
from libs.retrieval.types import Evidence
from libs.storage.sql import Database, turns
from services.executor.handlers import turn_failed
from tests.fakes_answering import (
    DOCUMENT_TEXT,
    FakeChatModel,
    FakeEvidenceSource,
    FakeLeases,
    refund_evidence,
)
from tests.unit.services.executor.conversation import ASK_BACK, Executor, planned, seen, until

NOTHING = Evidence(declined=True, reason="nothing-found")


async def test_without_a_model_the_documents_are_quoted(db: Database) -> None:
    executor = Executor(db)
    event = await planned(db)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert (turn.turn["state"], turn.turn["extractive"], turn.turn["declined"]) == (
        "done",
        True,
        False,
    )
    assert "“The refund limit is 20,000 yuan per order.” [1]" in turn.text
    assert [e.turn_id for e in executor.completed] == [event.turn_id]
    for citation in turn.citations:
        assert DOCUMENT_TEXT[citation["start"] : citation["end"]] == citation["quote"]
        assert {"n", "chunk_id", "document_id", "document_name", "page"} < citation.keys()


async def test_events_come_in_order_and_are_fanned_out_as_stored(db: Database) -> None:
    executor = Executor(db)
    event = await planned(db)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    order = list(dict.fromkeys(turn.types))
    assert order == ["status", "evidence", "delta", "citation", "suggestion", "done"]
    stored = [(e.seq, e.type) for e in turn.events[1:]]  # the first is the gateway's
    assert [(r.seq, r.type) for r in executor.fan_out.replies] == stored
    assert {record.partition for record in executor.fan_out.records} == {3}
    evidence = next(e.data for e in turn.events if e.type == "evidence")
    assert [item["n"] for item in evidence["items"]] == [1, 2]


async def test_nothing_found_is_said_without_citation_or_model(db: Database) -> None:
    model = FakeChatModel(["never asked"])
    executor = Executor(db, evidence=FakeEvidenceSource(NOTHING), model=model)
    event = await planned(db)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert turn.turn["declined"]
    assert turn.citations == []
    assert model.prompts == []
    assert "found nothing" in turn.text

    chinese = await planned(db, text="退款上限是多少？")
    await executor.bus.deliver(chinese)
    assert "没有找到" in (await seen(db, chinese.turn_id)).text


async def test_clarification_is_asked(db: Database) -> None:
    executor = Executor(db)
    event = await planned(db, ASK_BACK)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert turn.text == ASK_BACK.clarify_question
    assert turn.types == ["status", "status", "delta", "done"]


async def test_agent_plan_is_answered_from_the_documents_and_says_so(db: Database) -> None:
    executor = Executor(db)
    plan = ConversationExecutionPlan(ExecutionMode.REACT_AGENT, "What is the refund limit?")
    event = await planned(db, plan)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert "agent-unavailable" in turn.statuses
    assert turn.citations


async def test_domain_without_evidence_does_not_hide_the_others(db: Database) -> None:
    class OnlyEverywhere:
        async def gather(
            self, tenant: str, questions: Sequence[str], *, domains: Sequence[str] = ()
        ) -> Evidence:
            return NOTHING if domains else refund_evidence()

    executor = Executor(db, evidence=OnlyEverywhere())
    plan = ConversationExecutionPlan(
        ExecutionMode.RAG_CHAT, "What is the refund limit?", knowledge_domains=["law"]
    )
    event = await planned(db, plan)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert "searching-all-domains" in turn.statuses
    assert turn.citations


async def test_sub_questions_and_domains_reach_retrieval(db: Database) -> None:
    evidence = FakeEvidenceSource(refund_evidence())
    executor = Executor(db, evidence=evidence)
    plan = ConversationExecutionPlan(
        ExecutionMode.RAG_CHAT,
        "What is the limit and how long does approval take?",
        sub_questions=["What is the refund limit?", "How long does approval take?"],
        knowledge_domains=["finance"],
    )
    await executor.bus.deliver(await planned(db, plan))
    assert evidence.asked == [("acme", tuple(plan.sub_questions), ("finance",))]


async def test_models_answer_is_streamed_with_checked_citations(db: Database) -> None:
    model = FakeChatModel(["The limit is 20,000 ", "yuan [", "1]", ", says [9] rule", " [1]."])
    executor = Executor(db, model=model)
    event = await planned(db)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert turn.text == "The limit is 20,000 yuan [1], says rule [1]."
    assert [(c["n"], c["quote"]) for c in turn.citations] == [
        (1, "The refund limit is 20,000 yuan per order.")
    ]
    assert turn.turn["usage"]["unknown_citations"] == 1
    assert not turn.turn["extractive"]


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([ModelUnavailableError("unavailable", "HTTP 500")], "model-unavailable"),
        (["The limit ", ModelUnavailableError("cut-off", "broke")], "model-cut-off"),
        ([PermanentError("model-refused", "HTTP 401")], "model-refused"),
        (["The refund limit is 20,000 yuan for all orders."], "model-uncited"),
        (["The limit is 20,000 yuan [7]."], "model-uncited"),
        ([], "model-empty"),
    ],
)
async def test_unusable_model_answer_gives_way_to_quotations(
    db: Database, pieces: list[str | Exception], reason: str
) -> None:
    executor = Executor(db, model=FakeChatModel(pieces))
    event = await planned(db)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert turn.turn["extractive"]
    assert "20,000 yuan per order.” [1]" in turn.text
    said_why = [e.data.get("reason") for e in turn.events if e.type == "status"]
    assert reason in said_why
    assert turn.restarts == (1 if any(isinstance(p, str) for p in pieces) else 0)


@pytest.mark.parametrize(
    "pieces",
    [["NO_ANSWER"], ["NO", "_ANS", "WER", "."], ["The sources do not mention any limit."]],
)
async def test_model_that_finds_no_answer_declines(db: Database, pieces: list[str]) -> None:
    executor = Executor(db, model=FakeChatModel(pieces))
    event = await planned(db)
    await executor.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert turn.turn["declined"]
    assert turn.citations == []
    assert "NO_ANSWER" not in turn.text


async def test_redelivery_after_the_end_changes_nothing(db: Database) -> None:
    executor = Executor(db)
    event = await planned(db)
    await executor.bus.deliver(event)
    before = await seen(db, event.turn_id)
    await executor.bus.redeliver()
    after = await seen(db, event.turn_id)
    assert after.events == before.events
    assert len(executor.completed) == 1


async def test_turn_somebody_alive_works_on_is_left_alone(db: Database) -> None:
    leases = FakeLeases()
    event = await planned(db)
    leases.taken.add(f"turn:{event.turn_id}")
    executor = Executor(db, leases=leases)
    await executor.bus.deliver(event)
    assert (await seen(db, event.turn_id)).turn["state"] == "planned"
    assert executor.bus.dead_letters == []


async def test_foreign_tenants_turn_is_dropped(db: Database) -> None:
    executor = Executor(db)
    event = await planned(db)
    await executor.bus.deliver(TurnPlanned("evil", "c", event.turn_id, 0, event.plan))
    assert (await seen(db, event.turn_id)).turn["state"] == "planned"


async def test_retrieval_that_stays_away_fails_the_turn_once(db: Database) -> None:
    source = FakeEvidenceSource(TransientError("milvus is not there"))
    others_work = Policies(retry=RetryPolicy(max_attempts=3, base_delay_s=1.0))
    executor = Executor(db, evidence=source, policies=others_work)
    event = await planned(db)
    await executor.bus.deliver(event)
    while await executor.bus.run_due():
        pass
    turn = await seen(db, event.turn_id)
    assert turn.turn["state"] == "failed"
    assert turn.types.count("error") == 1
    assert turn.types[-1] == "error"
    assert "milvus" not in str(turn.turn["error"])


async def test_retrieval_that_comes_back_answers_the_turn(db: Database) -> None:
    source = FakeEvidenceSource(TransientError("milvus is not there"))
    executor = Executor(db, evidence=source)
    event = await planned(db)
    await executor.bus.deliver(event)
    source.evidence = refund_evidence()
    await executor.bus.run_due()
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert turn.turn["state"] == "done"


async def stop_requested(db: Database, event: TurnPlanned) -> None:
    async with db.work() as sql:
        await turns.cancel(sql, "acme", event.turn_id)


async def test_cancel_stops_a_stream_and_keeps_what_was_said(db: Database) -> None:
    pause = asyncio.Event()
    executor = Executor(db, model=FakeChatModel(["The limit ", "never said [1]"], pause=pause))
    event = await planned(db)
    work = asyncio.create_task(executor.bus.deliver(event))
    await until(lambda: "delta" in [reply.type for reply in executor.fan_out.replies])
    await stop_requested(db, event)
    async with asyncio.timeout(60):
        await work
    turn = await seen(db, event.turn_id)
    assert turn.turn["state"] == "cancelled"
    assert turn.turn["answer"] == "The limit"
    assert turn.types[-1] == "done"


async def test_cancel_stops_a_search_that_hangs(db: Database) -> None:
    source = FakeEvidenceSource(refund_evidence(), gate=asyncio.Event())
    executor = Executor(db, evidence=source)
    event = await planned(db)
    work = asyncio.create_task(executor.bus.deliver(event))
    await until(lambda: bool(source.asked))
    await stop_requested(db, event)
    async with asyncio.timeout(60):
        await work
    assert (await seen(db, event.turn_id)).turn["state"] == "cancelled"


async def test_cancelled_before_it_started_is_not_answered(db: Database) -> None:
    source = FakeEvidenceSource(refund_evidence())
    executor = Executor(db, evidence=source)
    event = await planned(db)
    await stop_requested(db, event)
    await executor.bus.deliver(event)
    assert (await seen(db, event.turn_id)).turn["state"] == "cancelled"
    assert source.asked == []


async def test_broadcast_stops_at_once_and_only_what_sql_says(db: Database) -> None:
    source = FakeEvidenceSource(refund_evidence(), gate=asyncio.Event())
    executor = Executor(db, evidence=source)
    executor.running._poll_interval_s = 3600.0  # only the broadcast can be quick
    event = await planned(db)
    work = asyncio.create_task(executor.bus.deliver(event))
    await until(lambda: bool(source.asked))
    broadcast = TurnControl("acme", event.turn_id, "cancel")
    await executor.running.on_control(broadcast)
    assert not work.done()
    await stop_requested(db, event)
    await executor.running.on_control(broadcast)
    async with asyncio.timeout(60):
        await work
    assert (await seen(db, event.turn_id)).turn["state"] == "cancelled"


async def test_a_failed_try_ends_no_turn_that_another_executor_works_on(db: Database) -> None:
    event = await planned(db)
    leases = FakeLeases()
    leases.taken.add(f"turn:{event.turn_id}")
    failure = Failure("retries-exhausted", "SQL was away", 20, permanent=False)
    await turn_failed(event, failure, Executor(db, leases=leases).deps)
    assert (await seen(db, event.turn_id)).turn["state"] == "planned"
    await turn_failed(event, failure, Executor(db).deps)  # nobody does any more
    await turn_failed(event, failure, Executor(db).deps)
    turn = await seen(db, event.turn_id)
    assert (turn.turn["state"], turn.types.count("error")) == ("failed", 1)


async def test_a_failed_try_of_a_foreign_tenants_event_ends_nothing(db: Database) -> None:
    event = await planned(db)
    foreign = TurnPlanned("evil", event.conversation_id, event.turn_id, 0, event.plan)
    await turn_failed(foreign, Failure("x", "", 1, permanent=True), Executor(db).deps)
    assert (await seen(db, event.turn_id)).turn["state"] == "planned"
