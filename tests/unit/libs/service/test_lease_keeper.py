"""Holding leases: one holder, kept alive, given back, taken over from the dead."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from sqlalchemy import select, update

from libs.service.lease_keeper import LeaseKeeper
from libs.storage.sql import Database
from libs.storage.sql.leases import acquire, live
from libs.storage.sql.tables import leases
from libs.storage.sql.work import UnitOfWork
from tests.waiting import until


async def is_live(db: Database) -> bool:
    async with db.reading() as sql:
        return await live(sql, ["turn:1"]) == {"turn:1"}


async def ends(db: Database) -> dict[str, int]:
    """When each lease runs out, by its name; microseconds since the epoch."""
    async with db.reading() as sql:
        return {row["name"]: row["expires_at"] for row in await sql.rows(select(leases))}


async def until_prolonged(db: Database, *names: str, by_s: float = 0.0) -> None:
    before = await ends(db)

    async def later() -> bool:
        now = await ends(db)
        return all(now[name] > before[name] + by_s * 1e6 for name in names)

    await until(later)


async def test_lease_is_held_for_the_block_and_given_back(db: Database) -> None:
    async with LeaseKeeper(db).hold("turn:1") as held:
        assert held
        assert await is_live(db)
    assert not await is_live(db)


async def test_lease_is_given_back_after_an_error(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with LeaseKeeper(db).hold("turn:1"):
            raise ZeroDivisionError
    assert not await is_live(db)


async def test_second_holder_of_the_same_process_finds_it_taken(db: Database) -> None:
    keeper = LeaseKeeper(db, ttl_s=2.0)
    async with keeper.hold("turn:1") as first, keeper.hold("turn:1") as second:
        assert (first, second) == (True, False)


async def test_held_lease_outlives_its_time_to_live(db: Database) -> None:
    async with LeaseKeeper(db, ttl_s=3.0).hold("turn:1"):
        await until_prolonged(db, "turn:1", by_s=3.0)
        assert await is_live(db)


async def test_all_that_is_held_is_prolonged_in_one_unit_of_work(db: Database) -> None:
    units = 0
    work = db.work

    @asynccontextmanager
    async def counted() -> AsyncIterator[UnitOfWork]:
        nonlocal units
        units += 1
        async with work() as sql:
            yield sql

    names = [f"turn:{number}" for number in range(20)]
    keeper = LeaseKeeper(db, ttl_s=3.0)
    async with AsyncExitStack() as held:
        for name in names:
            assert await held.enter_async_context(keeper.hold(name))
        db.work = counted  # type: ignore[method-assign]
        await until_prolonged(db, *names)
        assert units < len(names)


async def test_a_lost_lease_leaves_the_others_alone(db: Database) -> None:
    keeper = LeaseKeeper(db, ttl_s=3.0)
    async with keeper.hold("turn:1"), keeper.hold("turn:2"):
        async with db.work() as sql:
            await sql.execute(update(leases).where(leases.c.name == "turn:2").values(holder="else"))
        await until_prolonged(db, "turn:1")
        await until_prolonged(db, "turn:1")


async def test_after_a_pause_without_leases_they_are_prolonged_again(db: Database) -> None:
    keeper = LeaseKeeper(db, ttl_s=3.0)
    async with keeper.hold("turn:0"):
        pass
    async with keeper.hold("turn:1"):
        await until_prolonged(db, "turn:1")


async def test_dead_holders_lease_is_taken_over_when_it_runs_out(db: Database) -> None:
    async with db.work() as sql:
        await acquire(sql, "turn:1", "died", ttl_s=0.3)
    async with LeaseKeeper(db, ttl_s=0.3).hold("turn:1") as held:
        assert held


async def test_waiter_gets_a_lease_that_is_given_back(db: Database) -> None:
    keeper = LeaseKeeper(db, ttl_s=2.0)
    first = keeper.hold("turn:1")
    await first.__aenter__()

    async def wait() -> bool:
        async with keeper.hold("turn:1") as held:
            return held

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0.05)
    await first.__aexit__(None, None, None)
    assert await waiting
