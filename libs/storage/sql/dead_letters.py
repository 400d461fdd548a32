"""Messages that were given up: rows that people list, send again or throw away."""

from contextlib import suppress

from sqlalchemy import RowMapping, delete, insert, select, update

from libs.contracts import OutgoingRecord, retry_topic
from libs.kernel import ConflictError, NotFoundError, PermanentError, now_us
from libs.storage.sql.tables import dead_letters
from libs.storage.sql.work import UnitOfWork


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
    redriven: bool = False,
    limit: int = 100,
) -> list[RowMapping]:
    """The newest letters of a tenant, by default those that nobody sent again."""
    found = select(dead_letters).where(dead_letters.c.tenant == tenant)
    if group_id is not None:
        found = found.where(dead_letters.c.group_id == group_id)
    if not redriven:
        found = found.where(dead_letters.c.redriven_at.is_(None))
    return await sql.rows(found.order_by(dead_letters.c.created_at.desc()).limit(limit))


async def load(sql: UnitOfWork, tenant: str, letter_id: str) -> RowMapping:
    """One letter. Raises: NotFoundError."""
    found = await sql.first(
        select(dead_letters).where(dead_letters.c.id == letter_id, dead_letters.c.tenant == tenant)
    )
    if found is None:
        raise NotFoundError(f"no dead letter {letter_id}")
    return found


async def redrive(sql: UnitOfWork, tenant: str, letter_id: str) -> None:
    """Send a letter back to the group that gave it up, as its first attempt.

    Raises: NotFoundError; ConflictError when it was sent again before.
    """
    letter = await load(sql, tenant, letter_id)
    marked = (
        update(dead_letters)
        .where(dead_letters.c.id == letter_id, dead_letters.c.redriven_at.is_(None))
        .values(redriven_at=now_us())
    )
    if not await sql.compare_and_set(marked):
        raise ConflictError(f"dead letter {letter_id} was sent again before")
    headers = {name: text for name, text in letter["headers"].items() if name != "attempt"}
    topic = retry_topic(letter["topic"], letter["group_id"])
    await sql.emit_record(OutgoingRecord(topic, letter["key"], letter["value"], headers))


async def purge(sql: UnitOfWork, tenant: str, letter_id: str) -> None:
    """Throw a letter away. Raises: NotFoundError."""
    gone = delete(dead_letters).where(
        dead_letters.c.id == letter_id, dead_letters.c.tenant == tenant
    )
    if not await sql.compare_and_set(gone):
        raise NotFoundError(f"no dead letter {letter_id}")
