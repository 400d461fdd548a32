"""API keys: the clear text is seen once, when a key is made; SQL holds its SHA-256."""

import hashlib
import re
import secrets
from dataclasses import dataclass

from sqlalchemy import RowMapping, insert, select, update

from libs.kernel import ROLES, PermanentError, Principal, new_id, now_us
from libs.storage.sql.tables import api_keys
from libs.storage.sql.work import UnitOfWork

MIN_CHARS = 32  # of a key that was not made here
_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class NewKey:
    id: str
    clear: str  # never stored, never logged


async def create(sql: UnitOfWork, tenant: str, *, role: str, name: str) -> NewKey:
    """Make a key. 256 random bits need no slow hash: they cannot be guessed.

    Raises: PermanentError (`bad-tenant`, `bad-role`).
    """
    _check(tenant, role)
    key = NewKey(new_id(), f"slk_{secrets.token_urlsafe(32)}")
    await _insert(sql, key, tenant, role, name)
    return key


async def ensure(sql: UnitOfWork, clear: str, tenant: str, *, role: str, name: str) -> bool:
    """Let in a key that somebody else made, such as a new platform's first one.

    Returns: whether it was new; a key that is known stays as it is.
    Raises: PermanentError (`bad-tenant`, `bad-role`, `weak-key`, `key-revoked`, `key-differs`).
    """
    _check(tenant, role)
    if len(clear) < MIN_CHARS:
        raise PermanentError("weak-key", f"an API key has at least {MIN_CHARS} characters")
    row = await sql.first(select(api_keys).where(api_keys.c.key_sha256 == _digest(clear)))
    if row is None:
        await _insert(sql, NewKey(new_id(), clear), tenant, role, name)
        return True
    if row["revoked_at"] is not None:
        raise PermanentError("key-revoked", "this API key was revoked: choose another")
    if (row["tenant"], row["role"]) != (tenant, role):
        held = f"{row['role']} of {row['tenant']}"
        raise PermanentError("key-differs", f"this API key is {held}: choose another")
    return False


async def authenticate(sql: UnitOfWork, clear: str) -> Principal | None:
    """Who holds this key; None when it is unknown or revoked."""
    row = await sql.first(
        select(api_keys).where(
            api_keys.c.key_sha256 == _digest(clear), api_keys.c.revoked_at.is_(None)
        )
    )
    return Principal(row["tenant"], row["id"], row["role"]) if row is not None else None


async def is_live(sql: UnitOfWork, tenant: str, key_id: str) -> bool:
    """Whether the key is (still) one that is let in."""
    wanted = (
        api_keys.c.id == key_id,
        api_keys.c.tenant == tenant,
        api_keys.c.revoked_at.is_(None),
    )
    return await sql.first(select(api_keys.c.id).where(*wanted)) is not None


async def revoke(sql: UnitOfWork, tenant: str, key_id: str) -> bool:
    """Refuse the key from here on; False: unknown in this tenant, or revoked before."""
    return await sql.compare_and_set(
        update(api_keys)
        .where(
            api_keys.c.id == key_id, api_keys.c.tenant == tenant, api_keys.c.revoked_at.is_(None)
        )
        .values(revoked_at=now_us())
    )


async def listing(sql: UnitOfWork, tenant: str) -> list[RowMapping]:
    """The tenant's keys, oldest first, without their hashes."""
    columns = [column for column in api_keys.c if column.name != "key_sha256"]
    return await sql.rows(select(*columns).where(api_keys.c.tenant == tenant).order_by("id"))


def _check(tenant: str, role: str) -> None:
    if _TENANT.fullmatch(tenant) is None:
        raise PermanentError(
            "bad-tenant", "a tenant is 1-63 lower-case letters, digits and inner hyphens"
        )
    if role not in ROLES:
        raise PermanentError("bad-role", f"a role is one of {', '.join(ROLES)}")


async def _insert(sql: UnitOfWork, key: NewKey, tenant: str, role: str, name: str) -> None:
    await sql.execute(
        insert(api_keys).values(
            id=key.id,
            key_sha256=_digest(key.clear),
            tenant=tenant,
            role=role,
            name=name[:191],
            created_at=now_us(),
        )
    )


def _digest(clear: str) -> str:
    return hashlib.sha256(clear.encode("utf-8", "surrogateescape")).hexdigest()
