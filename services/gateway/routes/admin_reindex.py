"""/v1/admin/reindex: building a new set of search indexes, for the whole platform."""

import structlog
from fastapi import APIRouter, Depends
from sqlalchemy import RowMapping

from libs.documents.analysis import VERSION as ANALYSER
from libs.kernel import isoformat
from libs.storage.sql import UnitOfWork, active_index, index_builds, workers
from libs.storage.sql.index_builds import State
from libs.web import Admin, problems, requires
from services.gateway.deps import GatewayDep
from services.gateway.schemas_admin import ReindexIn, ReindexOut

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/v1/admin/reindex", tags=["admin"])

_REMEDY = "run `sluice reindex`"


@router.post("", status_code=202, responses=problems(409, 422))
async def start(gateway: GatewayDep, caller: Admin, body: ReindexIn) -> ReindexOut:
    """Build a new set of indexes beside the live one, which serves until the new one is whole.

    One at a time: 409 while one is under way. Files are not parsed again. With `rechunk` every
    document is cut anew by its recommended plan; each shows its new chunks when they are whole.
    """
    async with gateway.db.work() as sql:
        row = await index_builds.start(sql, rechunk=body.rechunk)
        shown = await _shown(sql, row)
    log.info("reindex_asked_for", rechunk=body.rechunk, by=caller.key_id)
    return shown


@router.get("", dependencies=[Depends(requires("admin"))], responses=problems())
async def status(gateway: GatewayDep) -> ReindexOut:
    """The re-index under way, or how the last one ended; and whether one is needed."""
    async with gateway.db.reading() as sql:
        return await _shown(sql, await index_builds.latest(sql))


@router.delete("", responses=problems(404, 409))
async def cancel(gateway: GatewayDep, caller: Admin) -> ReindexOut:
    """End the re-index under way: the live set stays, the new one is removed."""
    async with gateway.db.work() as sql:
        shown = await _shown(sql, await index_builds.cancel(sql))
    log.info("reindex_cancelled", by=caller.key_id)
    return shown


async def _shown(sql: UnitOfWork, row: RowMapping | None) -> ReindexOut:
    needed = await _needed(sql)
    if row is None:
        return ReindexOut(state="none", needed=needed)
    progress = None
    if row["state"] == State.BUILDING:
        progress = await index_builds.progress(sql, row["id"])
    return ReindexOut(
        id=row["id"],
        state=row["state"],
        rechunk=row["rechunk"],
        done=None if progress is None else progress.done,
        total=None if progress is None else progress.total,
        embedding_model=row["embedding_model"],
        problem=row["problem"],
        started_at=isoformat(row["created_at"]),
        switched_at=None if row["switched_at"] is None else isoformat(row["switched_at"]),
        ended_at=None if row["ended_at"] is None else isoformat(row["ended_at"]),
        needed=needed,
    )


async def _needed(sql: UnitOfWork) -> list[str]:
    """What has changed since the live set was made, in words; the indexer knows of the model."""
    said = {
        name
        for worker in await workers.living(sql)
        for name in worker["missing"]
        if _REMEDY in name
    }
    if await active_index.analyser(sql) not in {None, ANALYSER}:
        said.add(f"its words were cut by an older version: {_REMEDY}")
    return sorted(said)
