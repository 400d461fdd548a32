"""Idempotency keys: what a client's earlier request with the same key has made.

A key belongs to a tenant and a scope (`documents`, `conversations`, or a conversation's id), so
that keys of different things never meet.
"""

from sqlalchemy import insert, select

from libs.kernel import SluiceError, now_us
from libs.storage.sql.tables import idempotency_keys
from libs.storage.sql.work import UnitOfWork


class ReusedKeyError(SluiceError):
    """An Idempotency-Key came back with another request."""


async def made_before(sql: UnitOfWork, tenant: str, scope: str, key: str | None) -> str | None:
    """The id of what a request with this key made; None for a new key, or without one."""
    if key is None:
        return None
    found = await sql.scalar(
        select(idempotency_keys.c.entity_id).where(
            idempotency_keys.c.tenant == tenant,
            idempotency_keys.c.scope == scope,
            idempotency_keys.c.key == key,
        )
    )
    return None if found is None else str(found)


async def remember(
    sql: UnitOfWork, tenant: str, scope: str, key: str | None, entity_id: str
) -> None:
    """Keep what the key's request made, in the unit that makes it.

    Raises: ConflictError: the same request was faster, repeat the unit and find what it made.
    """
    if key is None:
        return
    await sql.execute(
        insert(idempotency_keys).values(
            tenant=tenant, scope=scope, key=key, entity_id=entity_id, created_at=now_us()
        )
    )
