"""Outbox rows: claimed, sent, marked.

An unsent row's `not_before` is also its claim: whoever may send it moves that time ahead first, so
that nobody else takes the row before the claim has run out. The process that commits a row holds
the first claim.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, RowMapping, bindparam, func, or_, select, update

from libs.contracts import OutgoingRecord, Position
from libs.kernel import now_us
from libs.storage.sql.epochs import load_epoch
from libs.storage.sql.tables import outbox
from libs.storage.sql.work import OutboxRow, UnitOfWork

# Nothing is put off for so long: a time farther ahead was written by a clock that ran ahead.
HORIZON_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class SentRow:
    """Where a row went, and into which log."""

    id: str
    position: Position
    broker_epoch: str


async def claim_due(sql: UnitOfWork, *, claim_us: int, limit: int) -> list[OutboxRow]:
    """Take up to `limit` rows whose time has come, oldest first; they are ours for `claim_us`."""
    now = now_us()
    found = await sql.rows(
        select(outbox)
        .where(outbox.c.sent_at.is_(None), _is_due(now))
        .order_by(outbox.c.not_before, outbox.c.created_at, outbox.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    ids = [row["id"] for row in found]
    await postpone(sql, ids, until=now + claim_us)
    rows = sorted(found, key=lambda row: (row["created_at"], row["id"]))
    return [OutboxRow(row["id"], _record(row), row["created_at"], now + claim_us) for row in rows]


def _record(row: RowMapping) -> OutgoingRecord:
    return OutgoingRecord(
        row["topic"], row["key"], row["value"], dict(row["headers"]), row["partition"]
    )


async def postpone(sql: UnitOfWork, ids: Sequence[str], *, until: int) -> None:
    """Let nobody send these rows before `until`."""
    if ids:
        await sql.execute(
            update(outbox)
            .where(outbox.c.id.in_(ids), outbox.c.sent_at.is_(None))
            .values(not_before=until)
        )


async def mark_sent(sql: UnitOfWork, sent: Sequence[SentRow]) -> None:
    """Keep where each row went."""
    if not sent:
        return
    statement = (
        update(outbox)
        .where(outbox.c.id == bindparam("row_id"))
        .values(
            partition=bindparam("to_partition"),
            offset=bindparam("to_offset"),
            broker_epoch=bindparam("in_epoch"),
            sent_at=bindparam("at"),
        )
    )
    now = now_us()
    await sql.execute(
        statement,
        [
            {
                "row_id": row.id,
                "to_partition": row.position.partition,
                "to_offset": row.position.offset,
                "in_epoch": row.broker_epoch,
                "at": now,
            }
            for row in sent
        ],
    )


@dataclass(frozen=True, slots=True)
class Backlog:
    """What has not been sent."""

    rows: int  # all of it, delayed rows too
    oldest_due_at: int | None  # when the oldest row that is due now was committed


async def backlog(sql: UnitOfWork) -> Backlog:
    """How much waits to be sent, and since when."""
    unsent = outbox.c.sent_at.is_(None)
    rows = await sql.scalar(select(func.count()).select_from(outbox).where(unsent))
    oldest = await sql.scalar(
        select(func.min(outbox.c.created_at)).where(unsent, _is_due(now_us()))
    )
    return Backlog(int(rows), None if oldest is None else int(oldest))


async def next_due(sql: UnitOfWork) -> int | None:
    """When the next unsent row's time comes; None: there is none."""
    unsent, now = outbox.c.sent_at.is_(None), now_us()
    times = select(
        func.min(outbox.c.not_before).label("first"), func.max(outbox.c.not_before).label("last")
    )
    found = await sql.first(times.where(unsent))
    if found is None or found["first"] is None:
        return None
    return now if found["last"] > now + HORIZON_US else int(found["first"])


async def oldest_sent(
    sql: UnitOfWork, next_offsets: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], int]:
    """For each (topic, partition): when the oldest row from that offset on was sent.

    Only rows in the log that the broker has now count. Left out: places that no row is known of.
    """
    epoch = await load_epoch(sql)
    found: dict[tuple[str, int], int] = {}
    for (topic, partition), offset in next_offsets.items():
        sent_at = await sql.scalar(
            select(func.min(outbox.c.sent_at)).where(
                outbox.c.topic == topic,
                outbox.c.partition == partition,
                outbox.c.offset >= offset,
                outbox.c.broker_epoch == epoch,
            )
        )
        if sent_at is not None:
            found[topic, partition] = int(sent_at)
    return found


def _is_due(now: int) -> ColumnElement[bool]:
    return or_(outbox.c.not_before <= now, outbox.c.not_before > now + HORIZON_US)


async def rows_by_key(
    sql: UnitOfWork, topics: Collection[str], keys: Collection[str]
) -> dict[str, list[RowMapping]]:
    """For each key its rows on any of these topics, oldest first, without the values."""
    found = await sql.rows(
        select(
            outbox.c.key,
            outbox.c.topic,
            outbox.c.partition,
            outbox.c.offset,
            outbox.c.sent_at,
            outbox.c.broker_epoch,
            outbox.c.not_before,
            outbox.c.created_at,
            outbox.c.headers,
        )
        .where(outbox.c.key.in_(keys), outbox.c.topic.in_(topics))
        .order_by(outbox.c.created_at, outbox.c.id)
    )
    rows: dict[str, list[RowMapping]] = defaultdict(list)
    for row in found:
        rows[row["key"]].append(row)
    return rows


async def newest_by_key(
    sql: UnitOfWork, topics: Collection[str], keys: Collection[str]
) -> dict[str, RowMapping]:
    """For each key its last row on any of these topics, without the value."""
    return {key: rows[-1] for key, rows in (await rows_by_key(sql, topics, keys)).items()}
