"""A stream ends with the key that opened it, and with nothing else."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from libs.kernel import Principal
from libs.storage.sql import Database, api_keys
from libs.web import while_valid


class Source:
    """Items of a stream, and whether it was closed."""

    def __init__(self) -> None:
        self.closed = False
        self.go_on = asyncio.Event()

    async def items(self, count: int) -> AsyncGenerator[int, None]:
        try:
            for number in range(count):
                yield number
            await self.go_on.wait()
            yield count
        finally:
            self.closed = True


async def a_key(db: Database) -> Principal:
    async with db.work() as sql:
        made = await api_keys.create(sql, "acme", role="reader", name="laptop")
    return Principal("acme", made.id, "reader")


async def test_a_silent_stream_ends_when_its_key_is_revoked(db: Database) -> None:
    source, principal = Source(), await a_key(db)
    async with aclosing(while_valid(source.items(1), db, principal, check_s=0.01)) as items:
        assert await anext(items) == 0
        async with db.work() as sql:
            await api_keys.revoke(sql, "acme", principal.key_id)
        async with asyncio.timeout(60):
            assert [item async for item in items] == []
    assert source.closed


async def test_a_busy_stream_ends_when_its_key_is_revoked(db: Database) -> None:
    source, principal = Source(), await a_key(db)
    async with db.work() as sql:
        await api_keys.revoke(sql, "acme", principal.key_id)
    endless = while_valid(source.items(10**9), db, principal, check_s=0.01)
    async with asyncio.timeout(60):
        assert len([item async for item in endless]) < 10**9
    assert source.closed


async def test_every_item_comes_while_the_key_is_valid_or_sql_is_away(db: Database) -> None:
    source, principal = Source(), await a_key(db)
    items = while_valid(source.items(3), db, principal, check_s=0.0)
    assert [await anext(items) for _ in range(3)] == [0, 1, 2]
    await db.close()
    source.go_on.set()
    assert [item async for item in items] == [3]
    assert source.closed


async def test_a_client_that_leaves_closes_the_source(db: Database) -> None:
    source, principal = Source(), await a_key(db)
    items = while_valid(source.items(1), db, principal)
    assert await anext(items) == 0
    waiting = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert source.closed
