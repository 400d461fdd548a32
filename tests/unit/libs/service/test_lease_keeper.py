"""Holding leases: one holder, kept alive, given back, taken over from the dead."""

import asyncio

import pytest

from libs.service.lease_keeper import LeaseKeeper
from libs.storage.sql import Database
from libs.storage.sql.leases import acquire, live


async def is_live(db: Database) -> bool:
    async with db.reading() as sql:
        return await live(sql, ["turn:1"]) == {"turn:1"}


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
    keeper = LeaseKeeper(db, ttl_s=0.3)
    async with keeper.hold("turn:1") as first, keeper.hold("turn:1") as second:
        assert (first, second) == (True, False)


async def test_held_lease_outlives_its_time_to_live(db: Database) -> None:
    async with LeaseKeeper(db, ttl_s=0.3).hold("turn:1"):
        await asyncio.sleep(0.9)  # three times to live
        assert await is_live(db)


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
