"""Turns that were asked become turns with a plan."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import structlog

from libs.contracts import TurnRequested
from libs.eventbus import Failure, Subscriptions
from libs.kernel import ConflictError, NotFoundError, TransientError
from libs.observability.metrics import PLANS
from libs.service.turn_journal import FanOut, Step, TurnJournal
from libs.storage.sql import Database
from libs.storage.sql.turn_events import last_seq
from libs.storage.sql.turns import (
    Outcome,
    load_turn,
    set_pending_question,
    set_plan,
    waits_for_another,
)
from services.orchestrator.domain.planner import Decision
from services.orchestrator.ports import Planner
from services.orchestrator.situation import read_situation

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Deps:
    db: Database
    planner: Planner
    fan_out: FanOut


async def plan_turn(event: TurnRequested, deps: Deps) -> None:
    """Plan a turn and announce `TurnPlanned`.

    Safe to repeat: only a turn that is still `requested` gets a plan, in the unit of work that
    moves it to `planned`; whoever comes second changes nothing. A turn that waits for an earlier
    one of its conversation is left alone: the end of that one announces it again.

    Raises: TransientError.
    """
    try:
        async with deps.db.reading() as sql:
            turn = await load_turn(sql, event.tenant, event.turn_id)
            if turn["state"] != "requested" or await waits_for_another(sql, turn):
                return
            situation = await read_situation(sql, turn)
            seq = await last_seq(sql, event.turn_id)
    except NotFoundError:
        log.warning("unknown_turn_dropped", turn_id=event.turn_id)
        return
    journal = TurnJournal.of(event, deps.db, deps.fan_out, after=seq)
    decision = await deps.planner.decide(situation, tenant=event.tenant, turn_id=event.turn_id)
    try:
        async with journal.step() as step:
            await _store(step, event, turn["conversation_id"], decision)
    except ConflictError as exc:
        if await _is_unplanned(event, deps):
            raise TransientError("an event of the turn was written while it was planned") from exc
        log.info("plan_dropped", turn_id=event.turn_id, why=str(exc))
        return
    PLANS.labels(decision.plan.execution_mode.value, decision.by).inc()


async def turn_failed(event: TurnRequested, failure: Failure, deps: Deps) -> None:
    """End a turn that could not be planned with an `error` event.

    Safe to repeat. A turn that another try has planned meanwhile is left alone.
    """
    detail = failure.detail if failure.permanent else "The question could not be planned."
    error = {"reason": failure.reason, "detail": detail}
    try:
        async with deps.db.reading() as sql:
            if (await load_turn(sql, event.tenant, event.turn_id))["state"] != "requested":
                return
            seq = await last_seq(sql, event.turn_id)
        async with TurnJournal.of(event, deps.db, deps.fan_out, after=seq).step() as step:
            await step.finish(Outcome("failed", error=error))
    except (ConflictError, NotFoundError) as exc:
        log.info("failure_dropped", turn_id=event.turn_id, why=str(exc))


async def _is_unplanned(event: TurnRequested, deps: Deps) -> bool:
    async with deps.db.reading() as sql:
        turn = await load_turn(sql, event.tenant, event.turn_id)
    return bool(turn["state"] == "requested")


async def _store(
    step: Step, event: TurnRequested, conversation_id: str, decision: Decision
) -> None:
    """Raises: ConflictError when the turn has a plan, or an end, already."""
    await step.append(
        ("status", {"turn_id": event.turn_id, "status": "planned"}),
        ("plan", _plan_event(decision)),
    )
    if not await set_plan(step.sql, event.tenant, event.turn_id, decision.plan):
        raise ConflictError("planned already")
    await set_pending_question(step.sql, event.tenant, conversation_id, decision.pending)


def subscriptions(deps: Deps) -> Subscriptions:
    return Subscriptions().on(
        TurnRequested, partial(plan_turn, deps=deps), failed=partial(turn_failed, deps=deps)
    )


def _plan_event(decision: Decision) -> dict[str, Any]:
    shown = asdict(decision.plan) | {"by": decision.by}
    return shown | ({"note": decision.note} if decision.note else {})
