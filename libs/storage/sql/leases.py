"""Leases: one holder at a time, until it lets go or falls silent."""

from collections.abc import Collection, Mapping

from sqlalchemy import ColumnElement, and_, delete, insert, not_, or_, select, update

from libs.kernel import ConflictError, now_us
from libs.storage.sql.tables import leases
from libs.storage.sql.work import UnitOfWork

# Nobody leases anything for so long: such a lease was written by a clock that ran ahead.
HORIZON_US = 600_000_000


async def acquire(sql: UnitOfWork, name: str, holder: str, *, ttl_s: float) -> bool:
    """Take a free or run-out lease, or prolong one's own; False: somebody else holds it."""
    now = now_us()
    expires_at = now + int(ttl_s * 1e6)
    taken = (
        update(leases)
        .where(leases.c.name == name, or_(leases.c.holder == holder, not_(_is_live(now))))
        .values(holder=holder, expires_at=expires_at)
    )
    if await sql.compare_and_set(taken):
        return True
    if await sql.scalar(select(leases.c.holder).where(leases.c.name == name)) is not None:
        return False
    try:
        row = {"name": name, "holder": holder, "expires_at": expires_at}
        await sql.execute(insert(leases).values(**row))
    except ConflictError:
        return False
    return True


async def renew(sql: UnitOfWork, held: Mapping[str, str], *, ttl_s: float) -> set[str]:
    """Prolong one's own leases, given as names by holder; returns the holders who lost theirs."""
    now = now_us()
    own = and_(
        leases.c.name.in_(held.values()), leases.c.holder.in_(held), leases.c.expires_at > now
    )
    prolonged = update(leases).where(own).values(expires_at=now + int(ttl_s * 1e6))
    if await sql.affected(prolonged) == len(held):
        return set()
    kept = await sql.rows(select(leases.c.holder).where(own))
    return set(held) - {row["holder"] for row in kept}


async def release(sql: UnitOfWork, name: str, holder: str) -> bool:
    """Let go of one's own lease; False: it was somebody else's by now."""
    own = delete(leases).where(leases.c.name == name, leases.c.holder == holder)
    return await sql.compare_and_set(own)


async def live(sql: UnitOfWork, names: Collection[str]) -> set[str]:
    """Which of these leases somebody holds now."""
    found = await sql.rows(
        select(leases.c.name).where(leases.c.name.in_(names), _is_live(now_us()))
    )
    return {row["name"] for row in found}


def _is_live(now: int) -> ColumnElement[bool]:
    return and_(leases.c.expires_at > now, leases.c.expires_at <= now + HORIZON_US)
