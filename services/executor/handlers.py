"""Planned turns get their answers."""

from dataclasses import dataclass
from functools import partial

import structlog
from sqlalchemy import RowMapping

from libs.contracts import TurnPlanned
from libs.eventbus import Failure, Subscriptions
from libs.kernel import ConflictError, NotFoundError
from libs.service.turn_journal import FanOut, TurnJournal
from libs.storage.sql import Database, UnitOfWork
from libs.storage.sql.memories import load_memory
from libs.storage.sql.turn_events import last_seq, standing_text
from libs.storage.sql.turns import Outcome, history, load_conversation, load_turn
from services.executor.cancellation import RunningTurns, TurnCancelledError
from services.executor.domain.prompt import Background
from services.executor.ports import Leases
from services.executor.run import Standing, Tools, TurnRun

log = structlog.get_logger(__name__)

RECENT_TURNS = 4


@dataclass(frozen=True, slots=True)
class Deps:
    db: Database
    leases: Leases
    running: RunningTurns
    fan_out: FanOut
    tools: Tools


async def execute_turn(event: TurnPlanned, deps: Deps) -> None:
    """Answer a planned turn, up to its one terminal event.

    Safe to repeat: a turn that has ended is left alone, one that somebody alive works on too (the
    reconciler announces it again should they stop), and one that was left is taken over at its
    checkpoint. Every write notices another writer and then stops.
    """
    async with deps.leases.hold(f"turn:{event.turn_id}") as held:
        if not held:
            log.info("turn_is_being_answered", turn_id=event.turn_id)
            return
        try:
            async with deps.db.reading() as sql:
                standing = await _standing(sql, event)
        except NotFoundError:
            log.warning("unknown_turn_dropped", turn_id=event.turn_id)
            return
        if standing.turn["state"] != "planned":
            return
        try:
            await _run(event, standing, deps)
        except ConflictError as exc:
            log.info("turn_left_to_another", turn_id=event.turn_id, why=str(exc))


async def _run(event: TurnPlanned, standing: Standing, deps: Deps) -> None:
    """Raises: ConflictError (overtaken, or ended meanwhile), TransientError."""
    journal = TurnJournal.of(event, deps.db, deps.fan_out, after=standing.seq)
    async with deps.running.running(event.tenant, event.turn_id) as stop:
        run = TurnRun(event.plan, standing, journal, stop, deps.tools)
        try:
            await run.execute()
        except TurnCancelledError:
            log.info("turn_cancelled", turn_id=event.turn_id)


async def turn_failed(event: TurnPlanned, failure: Failure, deps: Deps) -> None:
    """End a turn that could not be answered with an `error` event.

    Safe to repeat. A turn that another executor works on is left to it.
    """
    detail = failure.detail if failure.permanent else "The question could not be answered now."
    outcome = Outcome("failed", error={"reason": failure.reason, "detail": detail})
    async with deps.leases.hold(f"turn:{event.turn_id}") as held:
        if not held:
            log.info("failure_dropped", turn_id=event.turn_id, why="it is being answered")
            return
        async with deps.db.reading() as sql:
            seq = await last_seq(sql, event.turn_id)
        try:
            async with TurnJournal.of(event, deps.db, deps.fan_out, after=seq).step() as step:
                await step.finish(outcome)
        except (ConflictError, NotFoundError) as exc:
            log.info("failure_dropped", turn_id=event.turn_id, why=str(exc))


def subscriptions(deps: Deps) -> Subscriptions:
    return Subscriptions().on(
        TurnPlanned, partial(execute_turn, deps=deps), failed=partial(turn_failed, deps=deps)
    )


async def _standing(sql: UnitOfWork, event: TurnPlanned) -> Standing:
    """Raises: NotFoundError."""
    turn = await load_turn(sql, event.tenant, event.turn_id)
    return Standing(
        turn,
        await last_seq(sql, event.turn_id),
        bool(await standing_text(sql, event.turn_id)),
        await _background(sql, turn),
    )


async def _background(sql: UnitOfWork, turn: RowMapping) -> Background:
    conversation = await load_conversation(sql, turn["tenant"], turn["conversation_id"])
    if conversation["memory"] == "none":
        return Background()
    memory = await load_memory(sql, turn["tenant"], turn["conversation_id"])
    earlier = await history(
        sql, turn["tenant"], turn["conversation_id"], RECENT_TURNS, before_seq=turn["seq"]
    )
    return Background(
        slots=list(memory.slots.items()),
        summary=memory.summary,
        recent=[(row["text"], row["answer"] or "") for row in earlier],
    )
