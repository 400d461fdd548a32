"""Turns that were asked become turns with a plan."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import structlog

from libs.contracts import TurnRequested
from libs.eventbus import Failure, Subscriptions
from libs.kernel import ConflictError, NotFoundError
from libs.observability.metrics import PLANS
from libs.service.turn_journal import FanOut, Step, TurnJournal
from libs.storage.sql import Database
from libs.storage.sql.turn_events import last_seq
from libs.storage.sql.turns import (
    Outcome,
    load_turn,
    set_pending_question,
    set_plan,
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
    moves it to `planned`; whoever comes second changes nothing. A turn that was cancelled before it
    had a plan ends here.
    """
    try:
        async with deps.db.reading() as sql:
            turn = await load_turn(sql, event.tenant, event.turn_id)
            if turn["state"] != "requested":
                return
            situation = await read_situation(sql, turn)
            seq = await last_seq(sql, event.turn_id)
    except NotFoundError:
        log.warning("unknown_turn_dropped", turn_id=event.turn_id)
        return
    journal = _journal(event, deps, seq)
    if turn["cancel_requested"]:
        async with journal.step() as step:
            await step.finish(Outcome("cancelled"))
        return
    decision = await deps.planner.decide(situation, tenant=event.tenant, turn_id=event.turn_id)
    try:
        async with journal.step() as step:
            await _store(step, event, decision)
    except ConflictError as exc:
        log.info("plan_dropped", turn_id=event.turn_id, why=str(exc))
        return
    PLANS.labels(decision.plan.execution_mode.value, decision.by).inc()


async def turn_failed(event: TurnRequested, failure: Failure, deps: Deps) -> None:
    """End a turn that could not be planned with an `error` event.

    Safe to repeat. A turn that another try has planned meanwhile is left alone.
    """
    async with deps.db.reading() as sql:
        if (await load_turn(sql, event.tenant, event.turn_id))["state"] != "requested":
            return
        seq = await last_seq(sql, event.turn_id)
    async with _journal(event, deps, seq).step() as step:
        detail = failure.detail if failure.permanent else "The question could not be planned."
        error = {"reason": failure.reason, "detail": detail}
        await step.finish(Outcome("failed", error=error))


async def _store(step: Step, event: TurnRequested, decision: Decision) -> None:
    """Raises: ConflictError when the turn has a plan, or an end, already."""
    await step.append(
        ("status", {"turn_id": event.turn_id, "status": "planned"}),
        ("plan", _plan_event(decision)),
    )
    if not await set_plan(step.sql, event.tenant, event.turn_id, decision.plan):
        raise ConflictError("planned already")
    await set_pending_question(step.sql, event.tenant, event.conversation_id, decision.pending)


def subscriptions(deps: Deps) -> Subscriptions:
    return Subscriptions().on(
        TurnRequested, partial(plan_turn, deps=deps), failed=partial(turn_failed, deps=deps)
    )


def _journal(event: TurnRequested, deps: Deps, seq: int) -> TurnJournal:
    return TurnJournal(
        deps.db,
        deps.fan_out,
        tenant=event.tenant,
        turn_id=event.turn_id,
        partition=event.reply_partition,
        after=seq,
    )


def _plan_event(decision: Decision) -> dict[str, Any]:
    shown = asdict(decision.plan) | {"by": decision.by}
    return shown | ({"note": decision.note} if decision.note else {})
