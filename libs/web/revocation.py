"""Open streams end with their key: a revoked one is shown nothing more."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TypeVar

from libs.kernel import Principal, TransientError, end_tasks
from libs.storage.sql import Database, api_keys

CHECK_S = 5.0

T = TypeVar("T")


async def while_valid(
    items: AsyncGenerator[T, None], db: Database, principal: Principal, *, check_s: float = CHECK_S
) -> AsyncGenerator[T, None]:
    """The same items, until the principal's key is revoked: noticed within `check_s`.

    The stream just ends; the client that resumes it is told why by a 401. While SQL is away or
    slow the stream goes on. However it ends, `items` is closed.
    """
    revoked = asyncio.create_task(_revoked(db, principal, check_s))
    coming: asyncio.Future[T] | None = None
    try:
        while True:
            coming = asyncio.ensure_future(anext(items))
            await asyncio.wait({coming, revoked}, return_when=asyncio.FIRST_COMPLETED)
            if revoked.done():
                revoked.result()
                return
            try:
                item = await coming
            except StopAsyncIteration:
                return
            yield item
    finally:
        if coming is not None:
            await end_tasks(coming)
        await end_tasks(revoked)
        await items.aclose()


async def _revoked(db: Database, principal: Principal, check_s: float) -> None:
    """Until the key is no more."""
    while True:
        await asyncio.sleep(check_s)
        if not await _is_live(db, principal):
            return


async def _is_live(db: Database, principal: Principal) -> bool:
    with suppress(TransientError):
        async with db.reading() as sql:
            return await api_keys.is_live(sql, principal.tenant, principal.key_id)
    return True
