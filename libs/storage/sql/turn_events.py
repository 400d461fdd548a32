"""The events of a turn: the truth of every stream, numbered 1, 2, … without gaps.

Only the holder of the turn's lease appends; whoever lost it fails on the key (turn, seq).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, insert, select

from libs.contracts import TurnReply
from libs.kernel import ConflictError, NotFoundError, now_us
from libs.observability.metrics import TURN_EVENTS
from libs.storage.sql.tables import turn_events, turns
from libs.storage.sql.work import UnitOfWork

TERMINAL_TYPES = ("done", "error")


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One stored event; `seq` is the SSE id."""

    turn_id: str
    seq: int
    type: str
    data: Mapping[str, Any]

    @property
    def terminal(self) -> bool:
        return self.type in TERMINAL_TYPES


async def append_events(
    sql: UnitOfWork,
    tenant: str,
    turn_id: str,
    events: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    after: int | None = None,
) -> list[TurnEvent]:
    """Append (type, data) pairs to a running turn and return them numbered.

    Args:
        after: The last seq the caller knows, its own or the one it took over at. Give it, so that
            an appender that was overtaken notices; None goes on from whatever is stored.

    Raises:
        NotFoundError: no such turn for this tenant.
        ConflictError: the turn has ended, or somebody else appended after `after`.
        ValueError: a terminal event; only `turns.finish` writes those.
    """
    if any(kind in TERMINAL_TYPES for kind, _ in events):
        raise ValueError("terminal events are written by finish() alone")
    newest = select(func.max(turn_events.c.seq)).where(turn_events.c.turn_id == turn_id)
    turn = await sql.first(
        select(turns.c.state, newest.scalar_subquery().label("seq")).where(
            turns.c.tenant == tenant, turns.c.id == turn_id
        )
    )
    if turn is None:
        raise NotFoundError(f"there is no turn {turn_id}")
    if turn["state"] not in ("requested", "planned"):
        raise ConflictError(f"turn {turn_id} has ended ({turn['state']})")
    stored = turn["seq"] or 0
    if after is not None and after != stored:
        raise ConflictError(f"turn {turn_id} stands at seq {stored}, not at {after}")
    return await insert_events(sql, turn_id, stored, events)


async def events_after(
    sql: UnitOfWork, tenant: str, turn_id: str, seq: int, *, limit: int = 1_000
) -> list[TurnEvent]:
    """Events with a higher seq, in order. None for another tenant's turn."""
    rows = await sql.rows(
        select(turn_events.c.seq, turn_events.c.type, turn_events.c.data)
        .join(turns, turns.c.id == turn_events.c.turn_id)
        .where(turns.c.tenant == tenant, turns.c.id == turn_id, turn_events.c.seq > seq)
        .order_by(turn_events.c.seq)
        .limit(limit)
    )
    return [TurnEvent(turn_id, row["seq"], row["type"], row["data"]) for row in rows]


async def last_seq(sql: UnitOfWork, turn_id: str) -> int:
    """The seq of the newest event, 0 without any."""
    newest = select(func.max(turn_events.c.seq)).where(turn_events.c.turn_id == turn_id)
    return int(await sql.scalar(newest) or 0)


async def standing_text(sql: UnitOfWork, turn_id: str) -> str:
    """The text of the turn that clients hold: what no `restarted` event has voided."""
    said: list[str] = []
    found = select(turn_events.c.type, turn_events.c.data).where(
        turn_events.c.turn_id == turn_id, turn_events.c.type.in_(("delta", "restarted"))
    )
    for row in await sql.rows(found.order_by(turn_events.c.seq)):
        if row["type"] == "delta":
            said.append(row["data"]["text"])
        else:
            said.clear()
    return "".join(said)


async def last_seqs(sql: UnitOfWork, turn_ids: Iterable[str]) -> dict[str, int]:
    """The newest seq of many turns in one query, for readers that wait on them."""
    rows = await sql.rows(
        select(turn_events.c.turn_id, func.max(turn_events.c.seq).label("seq"))
        .where(turn_events.c.turn_id.in_(list(turn_ids)))
        .group_by(turn_events.c.turn_id)
    )
    return {row["turn_id"]: row["seq"] for row in rows}


async def insert_events(
    sql: UnitOfWork,
    turn_id: str,
    after: int,
    events: Sequence[tuple[str, Mapping[str, Any]]],
) -> list[TurnEvent]:
    """Write events as `after + 1, …`, any type. Raises: ConflictError (a seq is taken)."""
    numbered = [
        TurnEvent(turn_id, after + i, kind, dict(data)) for i, (kind, data) in enumerate(events, 1)
    ]
    if not numbered:
        return []
    at = now_us()
    rows = [
        {"turn_id": turn_id, "seq": e.seq, "type": e.type, "data": e.data, "at": at}
        for e in numbered
    ]
    await sql.execute(insert(turn_events), rows)
    sql.when_committed += [TURN_EVENTS.labels(event.type).inc for event in numbered]
    return numbered


def reply_of(tenant: str, event: TurnEvent) -> TurnReply:
    """The event as it is fanned out to the gateways."""
    return TurnReply(tenant, event.turn_id, event.seq, event.type, canonical_json(event.data))


def canonical_json(data: Mapping[str, Any]) -> str:
    """One spelling per value, so that a replayed stream equals the live one byte for byte."""
    return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
