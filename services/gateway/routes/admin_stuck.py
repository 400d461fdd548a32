"""/v1/admin/stuck: what has not moved and why; and the same for one document."""

from typing import Annotated

from fastapi import APIRouter, Query

from libs.kernel import now_us
from libs.storage.sql import documents
from libs.storage.sql.document_states import DocumentState
from libs.web import Admin, Reader, problems
from services.gateway.cursors import cursor_of, position_of
from services.gateway.deps import GatewayDep
from services.gateway.domain.standing import Why, explain_failure
from services.gateway.schemas_admin import StuckList, StuckOut, WhyOut
from services.gateway.stuck import Failed, StuckReader, Unmoved, of_document

router = APIRouter(tags=["admin"])

MAX_NAME_CHARS = 100
Limit = Annotated[int, Query(ge=1, le=1_000)]
FailedAfter = Annotated[
    str | None,
    Query(description="The `next_failed` of the page before: only failed documents after it."),
]
Seconds = Annotated[float, Query(ge=0, le=1e9, description="Leave out what moved since.")]


@router.get("/v1/admin/stuck", responses=problems(422))
async def stuck(
    gateway: GatewayDep,
    caller: Admin,
    older_than_s: Seconds = 60.0,
    limit: Limit = 100,
    failed_after: FailedAfter = None,
) -> StuckList:
    """Documents, deletions and turns that are not final and have not moved, each with why.

    Also failed documents; `resumable` says whether trying again can help. Both lists begin with
    what has waited longest and hold at most `limit` entries.
    """
    reader = StuckReader(gateway.db, gateway.backlogs)
    after = position_of(failed_after)
    unmoved = []
    if after is None:
        unmoved = await reader.unmoved(caller.tenant, older_than_s=older_than_s, limit=limit + 1)
    failed = await reader.failed(caller.tenant, limit=limit + 1, after=after)
    shown = failed[:limit]
    return StuckList(
        unfinished=[_unfinished(each, why) for each, why in unmoved[:limit]],
        failed=[_failed(each) for each in shown],
        more=len(unmoved) > limit,
        next_failed=(
            cursor_of(shown[-1].row["updated_at"], shown[-1].row["id"])
            if len(failed) > limit
            else None
        ),
    )


@router.get("/v1/documents/{document_id}/why", tags=["documents"], responses=problems(404))
async def why_document(gateway: GatewayDep, caller: Reader, document_id: str) -> WhyOut:
    """What a document waits for now: its place in a queue, a retry, a process that is away."""
    async with gateway.db.reading() as sql:
        row = await documents.load(sql, caller.tenant, document_id)
    if row["state"] == DocumentState.FAILED:
        why = explain_failure(row["stage"], row["reason"], row["detail"])
        return WhyOut(state=row["state"], why=why.reason, words=why.words)
    unmoved = of_document(row)
    if unmoved is None:
        return WhyOut(state=row["state"], why="final", words=f"{row['state']}: nothing is to come")
    ((_, why),) = await StuckReader(gateway.db, gateway.backlogs).explained([unmoved])
    return WhyOut(state=row["state"], why=why.reason, words=why.words)


def _unfinished(each: Unmoved, why: Why) -> StuckOut:
    return StuckOut(
        kind=each.kind,
        id=each.row["id"],
        name=each.name[:MAX_NAME_CHARS],
        state=each.row["state"],
        since_s=round(each.since_s, 1),
        why=why.reason,
        words=why.words,
        resumable=False,
    )


def _failed(each: Failed) -> StuckOut:
    return StuckOut(
        kind="document",
        id=each.row["id"],
        name=each.row["name"][:MAX_NAME_CHARS],
        state=each.row["state"],
        since_s=round(max(0.0, (now_us() - each.row["updated_at"]) / 1e6), 1),
        why=each.why.reason,
        words=each.why.words,
        resumable=each.resumable,
    )
