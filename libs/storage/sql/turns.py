"""Turns: `requested → planned → done | failed | cancelled`, each step a compare-and-set.

The events of a turn are in `libs.storage.sql.turn_events`, its conversation in
`libs.storage.sql.conversations`; both are re-exported here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, insert, select, update

from libs.contracts import (
    ConversationExecutionPlan,
    ExecutionMode,
    TurnCompleted,
    TurnControl,
    TurnPlanned,
    TurnRequested,
)
from libs.kernel import ConflictError, NotFoundError, new_id, now_us
from libs.storage.sql.conversations import (
    create_conversation,
    history,
    list_turns,
    load_conversation,
    pending_question,
    set_pending_question,
)
from libs.storage.sql.idempotency import ReusedKeyError, made_before, remember
from libs.storage.sql.tables import conversations, turns
from libs.storage.sql.turn_events import (
    TurnEvent,
    append_events,
    events_after,
    insert_events,
    last_seq,
    last_seqs,
    standing_text,
)
from libs.storage.sql.work import UnitOfWork

__all__ = [
    "FINAL_STATES",
    "OPEN_STATES",
    "Outcome",
    "TurnEvent",
    "append_events",
    "cancel",
    "checkpoint",
    "create_conversation",
    "create_turn",
    "events_after",
    "finish",
    "history",
    "last_seq",
    "last_seqs",
    "list_turns",
    "load_conversation",
    "load_turn",
    "pending_question",
    "plan_of",
    "planned_event",
    "requested_event",
    "result",
    "set_pending_question",
    "set_plan",
    "should_stop",
    "unfinished",
    "waits_for_another",
]

OPEN_STATES = ("requested", "planned")
FINAL_STATES = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended. `error` is `{"reason": code, "detail": sentence}`, for `failed` only."""

    state: str
    answer: str = ""
    declined: bool = False
    extractive: bool = False  # quoted from the evidence, no model wrote it
    citations: Sequence[Mapping[str, Any]] = ()
    suggestions: Sequence[str] = ()
    usage: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None


async def create_turn(
    sql: UnitOfWork,
    tenant: str,
    conversation_id: str,
    text: str,
    reply_partition: int,
    *,
    idempotency_key: str | None = None,
) -> RowMapping:
    """Store a question as its conversation's next turn and announce `TurnRequested`.

    The turn's first event, a `status` that carries `turn_id`, is stored with it. A key that asked
    in this conversation before gives the turn that it made, as it stands now.

    Raises: NotFoundError (the conversation), ReusedKeyError (the key asked something else),
    ConflictError (another turn took the place: repeat).
    """
    if made := await made_before(sql, tenant, conversation_id, idempotency_key):
        turn = await load_turn(sql, tenant, made)
        if turn["text"] != text:
            raise ReusedKeyError("this Idempotency-Key was used for another question")
        return turn
    conversation = await load_conversation(sql, tenant, conversation_id)
    seq = conversation["next_turn_seq"]
    place = (
        update(conversations)
        .where(conversations.c.id == conversation_id, conversations.c.next_turn_seq == seq)
        .values(next_turn_seq=seq + 1)
    )
    if not await sql.compare_and_set(place):
        raise ConflictError(f"conversation {conversation_id} got another turn at the same moment")
    turn_id, now = new_id(), now_us()
    await sql.execute(
        insert(turns).values(
            id=turn_id,
            tenant=tenant,
            conversation_id=conversation_id,
            seq=seq,
            text=text,
            state="requested",
            reply_partition=reply_partition,
            citations=[],
            suggestions=[],
            usage={},
            created_at=now,
            updated_at=now,
        )
    )
    first = {"turn_id": turn_id, "conversation_id": conversation_id, "status": "requested"}
    await insert_events(sql, turn_id, 0, [("status", first)])
    await remember(sql, tenant, conversation_id, idempotency_key, turn_id)
    turn = await load_turn(sql, tenant, turn_id)
    await sql.emit(requested_event(turn))
    return turn


async def load_turn(sql: UnitOfWork, tenant: str, turn_id: str) -> RowMapping:
    """Raises: NotFoundError, also for another tenant's turn."""
    row = await sql.first(select(turns).where(_is(tenant, turn_id)))
    if row is None:
        raise NotFoundError(f"there is no turn {turn_id}")
    return row


async def set_plan(
    sql: UnitOfWork, tenant: str, turn_id: str, plan: ConversationExecutionPlan
) -> bool:
    """requested → planned, and announce `TurnPlanned`. False: planned or ended already.

    Raises: NotFoundError.
    """
    row = await load_turn(sql, tenant, turn_id)
    if not await _change(sql, tenant, turn_id, ("requested",), state="planned", plan=asdict(plan)):
        return False
    await sql.emit(planned_event(row, plan))
    return True


async def checkpoint(
    sql: UnitOfWork, tenant: str, turn_id: str, data: Mapping[str, Any] | None
) -> bool:
    """Keep what a later executor needs to go on. False: the turn has ended."""
    return await _change(sql, tenant, turn_id, OPEN_STATES, checkpoint=data)


async def should_stop(sql: UnitOfWork, tenant: str, turn_id: str) -> bool:
    """Whether the turn has ended, cancelled by its user or otherwise. Raises: NotFoundError."""
    row = await load_turn(sql, tenant, turn_id)
    return row["state"] in FINAL_STATES


async def finish(sql: UnitOfWork, tenant: str, turn_id: str, outcome: Outcome) -> TurnEvent | None:
    """End a turn: its final state, the one terminal event and `TurnCompleted`, in this unit.

    The terminal event is `error` for `failed`, else `done`; its data is `result(row)`.
    Returns that event, for fan-out, or None when somebody ended the turn before.

    Raises: NotFoundError, ValueError (not a final state), ConflictError (an event was being
    appended at the same moment: repeat the unit of work).
    """
    if outcome.state not in FINAL_STATES:
        raise ValueError(f"{outcome.state!r} is not a final state, only {FINAL_STATES}")
    values = {**asdict(outcome), "usage": outcome.usage or {}, "checkpoint": None}
    if not await _change(sql, tenant, turn_id, OPEN_STATES, **values):
        await load_turn(sql, tenant, turn_id)
        return None
    row = await load_turn(sql, tenant, turn_id)
    kind = "error" if outcome.state == "failed" else "done"
    seq = await last_seq(sql, turn_id)
    events = await insert_events(sql, turn_id, seq, [(kind, result(row))])
    await sql.emit(TurnCompleted(tenant, row["conversation_id"], turn_id, outcome.state))
    await _announce_next(sql, row)
    return events[0]


async def cancel(sql: UnitOfWork, tenant: str, turn_id: str) -> TurnEvent | None:
    """End a turn that its user gave up, with what was said so far, whoever works on it.

    Its worker, if any, is told by broadcast, and fails on its next write in any case.
    Returns the terminal event, or None when the turn had ended before.

    Raises: NotFoundError, ConflictError (an event was appended at the same moment: repeat).
    """
    said = await standing_text(sql, turn_id)
    outcome = Outcome("cancelled", answer=said.strip())
    terminal = await finish(sql, tenant, turn_id, outcome)
    if terminal is not None:
        await sql.emit(TurnControl(tenant, turn_id, "cancel"))
    return terminal


async def waits_for_another(sql: UnitOfWork, turn: RowMapping) -> bool:
    """Whether an earlier turn of the conversation has not ended; its end announces this one."""
    earlier = _open_before(turn["conversation_id"], turn["seq"])
    return await sql.first(select(turns.c.id).where(earlier).limit(1)) is not None


async def _announce_next(sql: UnitOfWork, ended: RowMapping) -> None:
    """A conversation's turns are planned one after the other: each knows the answers before it."""
    following = await sql.first(
        select(turns)
        .where(
            turns.c.conversation_id == ended["conversation_id"],
            turns.c.seq > ended["seq"],
            turns.c.state == "requested",
        )
        .order_by(turns.c.seq)
        .limit(1)
    )
    if following is not None:
        await sql.emit(requested_event(following))


async def unfinished(sql: UnitOfWork, after: str, limit: int) -> list[RowMapping]:
    """Turns of every tenant that have not ended, by id, ids greater than `after`.

    Of each conversation only the first: the others wait for it.
    """
    earlier = turns.alias("earlier")
    waits = (
        select(earlier.c.id)
        .where(
            earlier.c.conversation_id == turns.c.conversation_id,
            earlier.c.seq < turns.c.seq,
            earlier.c.state.in_(OPEN_STATES),
        )
        .exists()
    )
    return await sql.rows(
        select(turns)
        .where(turns.c.state.in_(OPEN_STATES), turns.c.id > after, ~waits)
        .order_by(turns.c.id)
        .limit(limit)
    )


def result(turn: RowMapping) -> dict[str, Any]:
    """What clients see of a turn; fields are added, never renamed."""
    shown = (
        "conversation_id state answer declined extractive citations plan suggestions usage error"
    )
    return {"turn_id": turn["id"], **{name: turn[name] for name in shown.split()}}


def plan_of(turn: RowMapping) -> ConversationExecutionPlan | None:
    """The stored plan as a value; None while the turn is only requested."""
    if turn["plan"] is None:
        return None
    fields = dict(turn["plan"])
    fields["execution_mode"] = ExecutionMode(fields["execution_mode"])
    return ConversationExecutionPlan(**fields)


def requested_event(turn: RowMapping) -> TurnRequested:
    """The announcement of a question, the same each time it is made."""
    return TurnRequested(
        turn["tenant"], turn["conversation_id"], turn["id"], turn["reply_partition"]
    )


def planned_event(turn: RowMapping, plan: ConversationExecutionPlan) -> TurnPlanned:
    """The announcement of a planned turn, the same each time it is made."""
    return TurnPlanned(
        turn["tenant"], turn["conversation_id"], turn["id"], turn["reply_partition"], plan
    )


async def _change(
    sql: UnitOfWork, tenant: str, turn_id: str, expect: Sequence[str], **values: Any
) -> bool:
    return await sql.compare_and_set(
        update(turns)
        .where(_is(tenant, turn_id), turns.c.state.in_(expect))
        .values(updated_at=now_us(), **values)
    )


def _open_before(conversation_id: str, seq: int) -> ColumnElement[bool]:
    return and_(
        turns.c.conversation_id == conversation_id,
        turns.c.seq < seq,
        turns.c.state.in_(OPEN_STATES),
    )


def _is(tenant: str, turn_id: str) -> ColumnElement[bool]:
    return (turns.c.tenant == tenant) & (turns.c.id == turn_id)
