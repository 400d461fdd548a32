"""/v1/admin/dlq: messages that were given up. See them, send them again, throw them away."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from libs.kernel import ConflictError, NotFoundError, PermanentError, isoformat
from libs.storage.sql import UnitOfWork, dead_letters
from libs.storage.sql.dead_letters import Letter
from libs.web import Admin, problems
from services.gateway.cursors import cursor_of, position_of
from services.gateway.deps import Gateway, GatewayDep
from services.gateway.redriving import How, event_of, redrive
from services.gateway.schemas_admin import (
    Handled,
    HandledList,
    Label,
    LetterFilter,
    LetterList,
    LetterOut,
    LetterWhole,
    Refused,
)

router = APIRouter(prefix="/v1/admin/dlq", tags=["admin"])

BULK = 1_000  # letters that one request handles; the rest are the next request's

Act = Callable[[UnitOfWork, str, str], Awaitable[How]]


@router.get("", responses=problems(422))
async def list_letters(
    gateway: GatewayDep,
    caller: Admin,
    group: Annotated[Label | None, Query()] = None,
    reason: Annotated[Label | None, Query()] = None,
    handled: Annotated[bool, Query(description="Also those that were sent again.")] = False,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> LetterList:
    """Letters, newest first, in pages."""
    async with gateway.db.reading() as sql:
        found = await dead_letters.listing(
            sql,
            caller.tenant,
            group_id=group,
            reason=reason,
            redriven=handled,
            before=position_of(cursor),
            limit=limit + 1,
        )
    shown, more = found[:limit], len(found) > limit
    return LetterList(
        items=[LetterOut(**_fields(letter)) for letter in shown],
        next=_after(shown[-1]) if more else None,
    )


@router.get("/{letter_id}", responses=problems(404, 422))
async def show_letter(gateway: GatewayDep, caller: Admin, letter_id: Label) -> LetterWhole:
    """One letter with the event it holds."""
    async with gateway.db.reading() as sql:
        letter = await dead_letters.load(sql, caller.tenant, letter_id)
    event = event_of(letter)
    shown = None if event is None else {"type": type(event).__name__, **asdict(event)}
    headers = None if letter.headers is None else dict(letter.headers)
    return LetterWhole(**_fields(letter), event=shown, headers=headers)


@router.post("/{letter_id}/redrive", status_code=202, responses=problems(404, 409, 422))
async def redrive_letter(gateway: GatewayDep, caller: Admin, letter_id: Label) -> Handled:
    """Let its work go on. 409 says why that is over, and what to do instead."""
    async with gateway.db.work() as sql:
        how = await redrive(sql, caller.tenant, letter_id)
    return Handled(id=letter_id, how=how)


@router.delete("/{letter_id}", status_code=204, responses=problems(404, 422))
async def purge_letter(gateway: GatewayDep, caller: Admin, letter_id: Label) -> None:
    """Throw a letter away."""
    async with gateway.db.work() as sql:
        await dead_letters.purge(sql, caller.tenant, letter_id)


@router.post("/redrive", status_code=202, responses=problems(422))
async def redrive_letters(gateway: GatewayDep, caller: Admin, body: LetterFilter) -> HandledList:
    """Redrive every letter that the filter matches, the newest 1000 first; `next` tells of more."""
    return await _each(gateway, caller.tenant, body, redrive)


@router.post("/purge", responses=problems(422))
async def purge_letters(gateway: GatewayDep, caller: Admin, body: LetterFilter) -> HandledList:
    """Throw away every unhandled letter that the filter matches, by pages as for redriving."""
    return await _each(gateway, caller.tenant, body, _purge)


async def _purge(sql: UnitOfWork, tenant: str, letter_id: str) -> How:
    await dead_letters.purge(sql, tenant, letter_id)
    return "purged"


async def _each(gateway: Gateway, tenant: str, wanted: LetterFilter, act: Act) -> HandledList:
    async with gateway.db.reading() as sql:
        found = await dead_letters.listing(
            sql,
            tenant,
            group_id=wanted.group,
            reason=wanted.reason,
            before=position_of(wanted.cursor),
            limit=BULK + 1,
        )
    page = found[:BULK]
    result = HandledList(done=[], refused=[], next=_after(page[-1]) if len(found) > BULK else None)
    for letter in reversed(page):  # in the order in which they were given up
        try:
            async with gateway.db.work() as sql:
                how = await act(sql, tenant, letter.id)
            result.done.append(Handled(id=letter.id, how=how))
        except (ConflictError, NotFoundError, PermanentError) as exc:
            result.refused.append(Refused(id=letter.id, detail=str(exc)))
    return result


def _fields(letter: Letter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "group": letter.group_id,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "reason": letter.reason,
        "detail": letter.detail,
        "attempts": letter.attempts,
        "key": letter.key,
        "size_bytes": letter.size_bytes,
        "created_at": isoformat(letter.created_at),
        "redriven_at": None if letter.redriven_at is None else isoformat(letter.redriven_at),
    }


def _after(letter: Letter) -> str:
    return cursor_of(letter.created_at, letter.id)
