"""How long finished rows are kept, and the deletes that end them."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Table, and_, delete, select, tuple_

from libs.kernel import now_us
from libs.storage.sql.tables import (
    dead_letters,
    idempotency_keys,
    leases,
    model_calls,
    outbox,
    turn_events,
    turns,
    workers,
)
from libs.storage.sql.turns import FINAL_STATES
from libs.storage.sql.work import UnitOfWork

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
# What an ended turn's terminal event repeats, or nobody needs any more.
PASSING_TYPES = (
    *("status", "plan", "evidence", "delta", "tool", "citation", "suggestion", "restarted"),
)


@dataclass(frozen=True, slots=True)
class Retention:
    """For how many seconds rows of each kind are kept once nothing depends on them.

    What people own (documents, turns with their answers, unhandled dead letters) stays until they
    remove it. Of a turn that ended long ago the terminal event stays, which holds the whole answer,
    so its stream can be followed for ever: it only gets shorter. Unfinished work whose event was
    sent longer ago than `sent_events_s` counts as lost and is announced again, once.
    """

    sent_events_s: float = DAY_S
    turn_events_s: float = 30 * DAY_S
    model_calls_s: float = 400 * DAY_S
    handled_letters_s: float = 30 * DAY_S
    idempotency_keys_s: float = 7 * DAY_S
    # Signs of life of processes that ended without a word.
    leases_s: float = HOUR_S
    workers_s: float = HOUR_S


async def prune(sql: UnitOfWork, retention: Retention, *, limit: int) -> int:
    """Delete up to `limit` rows of every kind; returns the largest number deleted of one kind."""
    return max([await _delete(sql, *each, limit) for each in _finished(retention, now_us())])


def _finished(keep: Retention, now: int) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    def before(kept_s: float) -> int:
        return now - int(kept_s * 1e6)

    ended = select(turns.c.id).where(
        turns.c.id == turn_events.c.turn_id, turns.c.state.in_(FINAL_STATES)
    )
    yield outbox, outbox.c.sent_at < before(keep.sent_events_s)
    yield (
        turn_events,
        and_(
            turn_events.c.at < before(keep.turn_events_s),
            turn_events.c.type.in_(PASSING_TYPES),
            ended.exists(),
        ),
    )
    yield model_calls, model_calls.c.created_at < before(keep.model_calls_s)
    yield dead_letters, dead_letters.c.redriven_at < before(keep.handled_letters_s)
    yield idempotency_keys, idempotency_keys.c.created_at < before(keep.idempotency_keys_s)
    yield leases, leases.c.expires_at < before(keep.leases_s)
    yield workers, workers.c.seen_at < before(keep.workers_s)


async def _delete(sql: UnitOfWork, table: Table, where: ColumnElement[bool], limit: int) -> int:
    key = tuple_(*table.primary_key.columns)
    rows = await sql.rows(select(*table.primary_key.columns).where(where).limit(limit))
    if rows:
        await sql.execute(delete(table).where(key.in_([tuple(row.values()) for row in rows])))
    return len(rows)
