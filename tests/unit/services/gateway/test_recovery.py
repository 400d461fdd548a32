"""Unfinished turns: found at rest, with the event and the group that bring each further."""

from libs.contracts import ConversationExecutionPlan, ExecutionMode, TurnPlanned, TurnRequested
from libs.storage.sql import Database, turns
from services.gateway.recovery import UnfinishedTurns

PLAN = ConversationExecutionPlan(ExecutionMode.RAG_CHAT, "What is a sluice?", ["a", "b"], ["law"])


async def ask(db: Database, tenant: str) -> str:
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, tenant)
        return str((await turns.create_turn(sql, tenant, conversation_id, "What?", 5))["id"])


async def test_each_open_turn_goes_to_whoever_is_next(db: Database) -> None:
    requested, planned, ended = await ask(db, "acme"), await ask(db, "other"), await ask(db, "acme")
    async with db.work() as sql:
        await turns.set_plan(sql, "other", planned, PLAN)
        await turns.finish(sql, "acme", ended, turns.Outcome("done"))
    async with db.reading() as sql:
        found = dict(await UnfinishedTurns().unfinished(sql, "", 10))
        conversations = {
            row["id"]: row["conversation_id"] for row in await turns.unfinished(sql, "", 10)
        }
    assert list(found) == [requested, planned]
    assert found[requested].event == TurnRequested("acme", conversations[requested], requested, 5)
    assert found[planned].event == TurnPlanned("other", conversations[planned], planned, 5, PLAN)
    assert [w.group_id for w in found.values()] == ["orchestrator", "executor"]
    assert [w.lease for w in found.values()] == [f"turn:{requested}", f"turn:{planned}"]


async def test_turns_are_given_page_by_page(db: Database) -> None:
    ids = [await ask(db, "acme") for _ in range(5)]
    pages: list[list[str]] = []
    after = ""
    async with db.reading() as sql:
        while page := await UnfinishedTurns().unfinished(sql, after, 2):
            pages.append([turn_id for turn_id, _ in page])
            after = pages[-1][-1]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [turn_id for page in pages for turn_id in page] == ids
