"""The id of the log that the platform believes its broker has."""

from sqlalchemy import insert, select, update

from libs.kernel import now_us
from libs.storage.sql.tables import broker_epoch
from libs.storage.sql.work import UnitOfWork

_ROW = 1


async def load_epoch(sql: UnitOfWork) -> str | None:
    """The last epoch that was stored; None before the first."""
    found = await sql.scalar(select(broker_epoch.c.epoch).where(broker_epoch.c.id == _ROW))
    return None if found is None else str(found)


async def store_epoch(sql: UnitOfWork, epoch: str) -> bool:
    """Keep the epoch; True when it is another one than before."""
    known = await load_epoch(sql)
    if known is None:
        row = {"id": _ROW, "epoch": epoch, "seen_at": now_us()}
        await sql.execute(insert(broker_epoch).values(**row))
    elif known != epoch:
        changed = update(broker_epoch).where(broker_epoch.c.id == _ROW)
        await sql.execute(changed.values(epoch=epoch, seen_at=now_us()))
    return known != epoch
