"""Turns that have not ended, for the reconciler: whoever lost one is told of it again."""

from collections.abc import Sequence

from sqlalchemy import RowMapping

from libs.eventbus.reconciler import Unfinished
from libs.storage.sql import UnitOfWork, turns


class UnfinishedTurns:
    """`WorkSource`: a requested turn goes to the orchestrator, a planned one to an executor.

    A cancelled turn whose executor died is one of them: the next executor ends it.
    """

    kind = "turn"

    async def unfinished(
        self, sql: UnitOfWork, after: str, limit: int
    ) -> Sequence[tuple[str, Unfinished]]:
        return [(row["id"], work_of(row)) for row in await turns.unfinished(sql, after, limit)]


def work_of(turn: RowMapping) -> Unfinished:
    """What an open turn waits for."""
    plan, lease = turns.plan_of(turn), f"turn:{turn['id']}"
    if plan is not None:
        return Unfinished(turns.planned_event(turn, plan), "executor", lease=lease)
    return Unfinished(turns.requested_event(turn), "orchestrator", lease=lease)
