"""A lease has one holder at a time."""

import asyncio

from sqlalchemy import select, update

from libs.kernel import now_us
from libs.storage.sql import Database
from libs.storage.sql import leases as repo
from libs.storage.sql.tables import leases


async def acquire(db: Database, holder: str, ttl_s: float = 60.0) -> bool:
    async with db.work() as sql:
        return await repo.acquire(sql, "turn:1", holder, ttl_s=ttl_s)


async def lapse(db: Database) -> None:
    async with db.work() as sql:
        await sql.execute(update(leases).values(expires_at=1))


async def test_of_many_only_one_gets_it(db: Database) -> None:
    won = await asyncio.gather(*(acquire(db, f"worker-{number}") for number in range(8)))
    assert won.count(True) == 1


async def test_the_holder_may_take_it_again_and_prolong_it_others_may_not(db: Database) -> None:
    assert await acquire(db, "a")
    assert await acquire(db, "a")
    assert not await acquire(db, "b")
    async with db.work() as sql:
        assert await repo.renew(sql, {"a": "turn:1"}, ttl_s=60) == set()
        assert await repo.renew(sql, {"b": "turn:1"}, ttl_s=60) == {"b"}
        assert await repo.live(sql, {"turn:1", "turn:2"}) == {"turn:1"}


async def test_a_lapsed_lease_goes_to_the_next_and_its_old_holder_learns_it(db: Database) -> None:
    assert await acquire(db, "dead")
    await lapse(db)
    async with db.work() as sql:
        assert await repo.live(sql, {"turn:1"}) == set()
        assert await repo.renew(sql, {"dead": "turn:1"}, ttl_s=60) == {"dead"}
    assert await acquire(db, "next")
    async with db.work() as sql:
        assert await repo.renew(sql, {"dead": "turn:1"}, ttl_s=60) == {"dead"}
        assert not await repo.release(sql, "turn:1", "dead")
        assert await repo.release(sql, "turn:1", "next")
    assert await acquire(db, "third")


async def test_many_are_prolonged_at_once_and_the_lost_ones_named(db: Database) -> None:
    held = {f"holder-{number}": f"turn:{number}" for number in range(5)}
    async with db.work() as sql:
        for holder, name in held.items():
            assert await repo.acquire(sql, name, holder, ttl_s=60)
        lost = {"holder-1", "holder-3"}
        await sql.execute(update(leases).where(leases.c.holder.in_(lost)).values(expires_at=1))
        assert await repo.renew(sql, held, ttl_s=600) == lost
        ends = await sql.rows(select(leases.c.holder).where(leases.c.expires_at > now_us() + 10**8))
        assert {row["holder"] for row in ends} == set(held) - lost


async def test_a_lease_that_a_clock_ran_ahead_for_does_not_last_for_hours(db: Database) -> None:
    assert await acquire(db, "ahead")
    async with db.work() as sql:
        await sql.execute(update(leases).values(expires_at=leases.c.expires_at + 86_400_000_000))
        assert await repo.live(sql, {"turn:1"}) == set()
    assert await acquire(db, "next")
    assert not await acquire(db, "third")
