"""The sweep of finished rows runs in one process at a time, and another takes over."""

import asyncio

from sqlalchemy import func, insert, select, update

from libs.kernel import now_us
from libs.service.housekeeping import LEASE, Housekeeper, HousekeepingPolicy
from libs.storage.sql import Database
from libs.storage.sql.retention import Retention
from libs.storage.sql.tables import leases, model_calls
from tests.waiting import until

CALL = {
    "tenant": "acme",
    "model": "m",
    "purpose": "answer",
    "outcome": "ok",
    "created_at": 1,
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "seconds": 1.0,
}


async def use_models(db: Database, count: int) -> None:
    async with db.work() as sql:
        await sql.execute(insert(model_calls), [CALL | {"id": f"c{n}"} for n in range(count)])


async def calls(db: Database) -> int:
    async with db.reading() as sql:
        return int(await sql.scalar(select(func.count()).select_from(model_calls)))


async def test_only_the_holder_of_the_lease_sweeps_until_it_falls_silent(db: Database) -> None:
    one, other = (
        Housekeeper(db, Retention(), HousekeepingPolicy(interval_s=60, batch=2)) for _ in range(2)
    )
    await use_models(db, 6)
    assert [await one.sweep_once(), await other.sweep_once(), await one.sweep_once()] == [2, 0, 2]
    async with db.work() as sql:
        dead = update(leases).where(leases.c.name == LEASE)
        await sql.execute(dead.values(expires_at=now_us() - 1))
    assert await other.sweep_once() == 2
    assert await calls(db) == 0


async def test_it_goes_on_until_nothing_is_left_to_remove(db: Database) -> None:
    await use_models(db, 25)
    policy = HousekeepingPolicy(interval_s=0.01, batch=3, pause_s=0.0)
    running = asyncio.create_task(Housekeeper(db, Retention(), policy).run())

    async def nothing_left() -> bool:
        return await calls(db) == 0

    await until(nothing_left)
    running.cancel()
