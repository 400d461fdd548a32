"""Heartbeat rows: which processes live, and what each of them waits for."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping, delete, insert, select, update

from libs.kernel import now_us
from libs.storage.sql.tables import workers
from libs.storage.sql.work import UnitOfWork

GONE_AFTER_US = 10_000_000


@dataclass(frozen=True, slots=True)
class Worker:
    """One process."""

    id: str
    service: str
    host: str
    pid: int
    started_at: int


async def beat(sql: UnitOfWork, worker: Worker, missing: Sequence[str]) -> None:
    """Say that the process lives and what it waits for; nothing missing means ready."""
    state = {"ready": not missing, "missing": list(missing), "seen_at": now_us()}
    known = update(workers).where(workers.c.id == worker.id).values(**state)
    if not await sql.compare_and_set(known):
        await sql.execute(
            insert(workers).values(
                id=worker.id,
                service=worker.service,
                host=worker.host,
                pid=worker.pid,
                started_at=worker.started_at,
                **state,
            )
        )


async def leave(sql: UnitOfWork, worker_id: str) -> None:
    """The process ends in good order."""
    await sql.execute(delete(workers).where(workers.c.id == worker_id))


async def living(sql: UnitOfWork) -> list[RowMapping]:
    """The processes whose heartbeat is live."""
    return await sql.rows(
        select(workers)
        .where(workers.c.seen_at >= now_us() - GONE_AFTER_US)
        .order_by(workers.c.service, workers.c.started_at)
    )
