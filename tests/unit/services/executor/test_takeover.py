"""An executor dies at any write; the next one finishes the turn, with one end and no gap."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from libs.models.ports import ChatModel
from libs.storage.sql import Database, UnitOfWork
from services.executor.handlers import execute_turn
from tests.fakes_answering import FakeChatModel
from tests.unit.services.executor.conversation import ASK_BACK, SEARCH, Executor, planned, seen

PIECES = ["The limit is 20,000 yuan [1]. ", "Approval takes two days [2]."]


class Killed(BaseException):
    """Nothing in the product catches this, as nothing catches SIGKILL."""


class DyingDatabase(Database):
    """Dies at its n-th unit of work, before or after the commit."""

    def __init__(self, db: Database, at: int, *, committed: bool) -> None:
        super().__init__(db.engine)
        self.left = at
        self.committed = committed

    @asynccontextmanager
    async def work(self) -> AsyncIterator[UnitOfWork]:
        self.left -= 1
        async with super().work() as sql:
            yield sql
            if self.left == 0 and not self.committed:
                raise Killed
        if self.left == 0:
            raise Killed


def models(kind: str) -> tuple[ChatModel | None, ChatModel | None]:
    if kind == "model":
        return FakeChatModel(PIECES), FakeChatModel(PIECES)
    return None, None


@pytest.mark.parametrize("committed", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize("at", range(1, 12))
@pytest.mark.parametrize("kind", ["quotes", "model", "clarify"])
async def test_turn_is_finished_by_the_next_executor(
    db: Database, kind: str, at: int, committed: bool
) -> None:
    first, second = models(kind)
    event = await planned(db, ASK_BACK if kind == "clarify" else SEARCH)
    dying = DyingDatabase(db, at, committed=committed)
    died = False
    try:
        await execute_turn(event, Executor(dying, model=first).deps)
    except Killed:
        died = True
    left = await seen(db, event.turn_id)
    next_one = Executor(db, model=second)
    await next_one.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert turn.turn["state"] == "done"
    assert turn.restarts == (1 if "delta" in left.types and left.turn["state"] != "done" else 0)
    assert died or left.turn["state"] == "done"
    # However it went, the user reads the same answer.
    undisturbed = await planned(db, event.plan)
    await Executor(db, model=models(kind)[0]).bus.deliver(undisturbed)
    assert turn.text == (await seen(db, undisturbed.turn_id)).text


async def test_evidence_is_not_searched_again_after_its_checkpoint(db: Database) -> None:
    event = await planned(db)
    dying = DyingDatabase(db, 3, committed=True)  # started, evidence, first words
    with pytest.raises(Killed):
        await execute_turn(event, Executor(dying).deps)
    next_one = Executor(db)
    await next_one.bus.deliver(event)
    source = next_one.deps.tools.evidence
    assert getattr(source, "asked") == []  # noqa: B009
    turn = await seen(db, event.turn_id)
    assert turn.types.count("evidence") == 1


async def test_overtaken_executor_writes_nothing_more(db: Database) -> None:
    """A process that was frozen past its lease wakes up after another has gone on."""
    event = await planned(db)
    frozen = Executor(db)
    overtaking = Executor(db)

    class Overtake:
        async def gather(self, tenant, questions, *, domains=()):  # type: ignore[no-untyped-def]
            await overtaking.bus.deliver(event)
            return await overtaking.deps.tools.evidence.gather(tenant, questions, domains=domains)

    frozen = Executor(db, evidence=Overtake())
    await frozen.bus.deliver(event)
    turn = await seen(db, event.turn_id)
    turn.check_whole()
    assert frozen.bus.dead_letters == []
    assert turn.types.count("done") == 1
