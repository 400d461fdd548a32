"""/v1/admin/keys: who may do what in the caller's tenant."""

from fastapi import APIRouter
from sqlalchemy import RowMapping

from libs.kernel import ConflictError, NotFoundError, isoformat
from libs.storage.sql import api_keys
from libs.web import Admin, problems
from services.gateway.deps import GatewayDep
from services.gateway.schemas_admin import KeyIn, KeyList, KeyMade, KeyOut, Label

router = APIRouter(prefix="/v1/admin/keys", tags=["admin"])


@router.get("", responses=problems())
async def list_keys(gateway: GatewayDep, caller: Admin) -> KeyList:
    """The tenant's keys, oldest first, revoked ones too; never the keys themselves."""
    async with gateway.db.reading() as sql:
        return KeyList(items=[_shown(row) for row in await api_keys.listing(sql, caller.tenant)])


@router.post("", status_code=201, responses=problems(422))
async def create_key(gateway: GatewayDep, caller: Admin, body: KeyIn) -> KeyMade:
    """Make a key of the caller's tenant. Only this answer shows it."""
    async with gateway.db.work() as sql:
        made = await api_keys.create(sql, caller.tenant, role=body.role, name=body.name)
        rows = await api_keys.listing(sql, caller.tenant)
    row = next(row for row in rows if row["id"] == made.id)
    return KeyMade(**_shown(row).model_dump(), key=made.clear)


@router.delete("/{key_id}", status_code=204, responses=problems(404, 409, 422))
async def revoke_key(gateway: GatewayDep, caller: Admin, key_id: Label) -> None:
    """Refuse a key from its next request on. Nobody revokes the key he is using."""
    if key_id == caller.key_id:
        raise ConflictError("this is the key you are using: revoke it with another one")
    async with gateway.db.work() as sql:
        if not await api_keys.revoke(sql, caller.tenant, key_id):
            raise NotFoundError(f"there is no valid key {key_id}")


def _shown(row: RowMapping) -> KeyOut:
    revoked_at = row["revoked_at"]
    return KeyOut(
        id=row["id"],
        name=row["name"],
        role=row["role"],
        created_at=isoformat(row["created_at"]),
        revoked_at=None if revoked_at is None else isoformat(revoked_at),
    )
