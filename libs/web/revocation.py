"""Open streams end with their key: a revoked one is shown nothing more."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TypeVar

from libs.kernel import Principal, TransientError
from libs.storage.sql import Database, api_keys

CHECK_S = 5.0

T = TypeVar("T")


async def while_valid(
    items: AsyncGenerator[T, None], db: Database, principal: Principal, *, check_s: float = CHECK_S
) -> AsyncGenerator[T, None]:
    """The same items, until the principal's key is revoked: noticed within `check_s`.

    The stream just ends; the client that resumes it is told why by a 401. While SQL is away the
    stream goes on. However it ends, `items` is closed.
    """
    clock = asyncio.get_running_loop().time
    check_at = clock() + check_s
    coming: asyncio.Future[T] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(items))
            await asyncio.wait({coming}, timeout=max(0.0, check_at - clock()))
            if clock() >= check_at:
                if not await _is_live(db, principal):
                    return
                check_at = clock() + check_s
            if coming.done():
                come, coming = coming, None
                try:
                    item = come.result()
                except StopAsyncIteration:
                    return
                yield item
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        await items.aclose()


async def _is_live(db: Database, principal: Principal) -> bool:
    with suppress(TransientError):
        async with db.reading() as sql:
            return await api_keys.is_live(sql, principal.tenant, principal.key_id)
    return True
