"""Messages that were given up: rows that people list, send again or throw away.

A letter belongs to the tenant of its event, told by the event itself or by the record's headers.
One that neither names (no Sluice service wrote it) belongs to nobody: every tenant's
administrator may list it, send it again and throw it away, but is shown only where it was and why
it was given up, as what it holds may be anyone's.

A letter that was sent again counts as handled. Should the group give the message up once more, that
is a new letter.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import ColumnElement, RowMapping, and_, delete, func, insert, or_, select, update

from libs.contracts import OutgoingRecord, retry_topic
from libs.kernel import ConflictError, NotFoundError, PermanentError, now_us
from libs.storage.sql.tables import dead_letters
from libs.storage.sql.work import UnitOfWork

NOBODY = ""  # the tenant of letters that name none


@dataclass(frozen=True, slots=True)
class Letter:
    """What an administrator sees. `key`, `value`, `headers` and `detail` of a letter that is
    nobody's are withheld: None.
    """

    id: str
    tenant: str  # NOBODY: it named none
    topic: str  # the base topic; lanes and retries are told apart by `partition` and `offset` only
    group_id: str
    partition: int
    offset: int
    reason: str
    attempts: int
    size_bytes: int
    created_at: int
    redriven_at: int | None
    key: str | None = None
    value: bytes | None = None  # framed Avro, or whatever could not be decoded
    headers: Mapping[str, str] | None = None
    detail: str | None = None


async def store(sql: UnitOfWork, letter: dict[str, object], record: OutgoingRecord) -> bool:
    """Keep a letter and put its record on the dead-letter topic, both or neither.

    Returns False when the letter is known already: a message is given up once.
    """
    known = select(dead_letters.c.id).where(dead_letters.c.id == letter["id"])
    if await sql.scalar(known) is not None:
        return False
    await sql.execute(insert(dead_letters).values(**letter))
    with suppress(PermanentError):  # too large for an event; the row has it all
        await sql.emit_record(record)
    return True


async def listing(
    sql: UnitOfWork,
    tenant: str,
    *,
    group_id: str | None = None,
    reason: str | None = None,
    redriven: bool = False,
    before: tuple[int, str] | None = None,
    limit: int = 100,
) -> list[Letter]:
    """The newest letters that a tenant's administrator may see, by default the unhandled ones.

    Args:
        redriven: Also those that were sent again.
        before: `(created_at, id)` of the last letter of the page before.
    """
    found = select(dead_letters).where(_visible_to(tenant))
    if group_id is not None:
        found = found.where(dead_letters.c.group_id == group_id)
    if reason is not None:
        found = found.where(dead_letters.c.reason == reason)
    if not redriven:
        found = found.where(dead_letters.c.redriven_at.is_(None))
    if before is not None:
        at, letter_id = before
        same_time = and_(dead_letters.c.created_at == at, dead_letters.c.id < letter_id)
        found = found.where(or_(dead_letters.c.created_at < at, same_time))
    newest_first = found.order_by(dead_letters.c.created_at.desc(), dead_letters.c.id.desc())
    return [_letter(row) for row in await sql.rows(newest_first.limit(limit))]


async def unhandled(sql: UnitOfWork, tenant: str | None) -> dict[tuple[str, str], int]:
    """By (group, base topic): how many letters wait for a person; None: of all tenants."""
    found = select(dead_letters.c.group_id, dead_letters.c.topic, func.count().label("count"))
    found = found.where(dead_letters.c.redriven_at.is_(None))
    if tenant is not None:
        found = found.where(_visible_to(tenant))
    rows = await sql.rows(found.group_by(dead_letters.c.group_id, dead_letters.c.topic))
    return {(row["group_id"], row["topic"]): row["count"] for row in rows}


async def load(sql: UnitOfWork, tenant: str, letter_id: str) -> Letter:
    """One letter. Raises: NotFoundError."""
    return _letter(await _row(sql, tenant, letter_id))


async def settle(sql: UnitOfWork, tenant: str, letter_id: str) -> None:
    """Count a letter as handled: its work goes on by other means.

    Raises: NotFoundError; ConflictError when it was handled before.
    """
    await _row(sql, tenant, letter_id)
    marked = (
        update(dead_letters)
        .where(dead_letters.c.id == letter_id, dead_letters.c.redriven_at.is_(None))
        .values(redriven_at=now_us())
    )
    if not await sql.compare_and_set(marked):
        raise ConflictError(f"dead letter {letter_id} was sent again before")


async def redrive(sql: UnitOfWork, tenant: str, letter_id: str) -> None:
    """Send a letter back to the group that gave it up, as its first attempt.

    Raises: NotFoundError; ConflictError when it was sent again before; PermanentError
    (`event-too-large`).
    """
    letter = await _row(sql, tenant, letter_id)
    await settle(sql, tenant, letter_id)
    headers = {name: text for name, text in letter["headers"].items() if name != "attempt"}
    headers.setdefault("origin", "/".join(str(letter[c]) for c in ("topic", "partition", "offset")))
    topic = retry_topic(letter["topic"], letter["group_id"])
    await sql.emit_record(OutgoingRecord(topic, letter["key"], letter["value"], headers))


async def purge(sql: UnitOfWork, tenant: str, letter_id: str) -> None:
    """Throw a letter away, handled or not. Raises: NotFoundError."""
    gone = delete(dead_letters).where(dead_letters.c.id == letter_id, _visible_to(tenant))
    if not await sql.compare_and_set(gone):
        raise NotFoundError(f"no dead letter {letter_id}")


async def _row(sql: UnitOfWork, tenant: str, letter_id: str) -> RowMapping:
    found = await sql.first(
        select(dead_letters).where(dead_letters.c.id == letter_id, _visible_to(tenant))
    )
    if found is None:
        raise NotFoundError(f"no dead letter {letter_id}")
    return found


def _visible_to(tenant: str) -> ColumnElement[bool]:
    return dead_letters.c.tenant.in_((tenant, NOBODY))


def _letter(row: RowMapping) -> Letter:
    shown = {
        name: row[name]
        for name in (
            *("id", "tenant", "topic", "group_id", "partition", "offset"),
            *("reason", "attempts", "created_at", "redriven_at"),
        )
    }
    content = {name: row[name] for name in ("key", "value", "headers", "detail")}
    if row["tenant"] == NOBODY:
        content = {}
    return Letter(**shown, **content, size_bytes=len(row["value"]))
