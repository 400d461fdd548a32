"""Turns as clients see them: as rows, as events, and whole once they have ended."""

import asyncio

from fastapi import Response, status
from sqlalchemy import RowMapping

from libs.kernel import Principal, isoformat
from libs.storage.sql import turns
from libs.web import while_valid
from services.gateway.deps import Gateway
from services.gateway.schemas import TurnOut
from services.gateway.streaming import EventStream, frames


def shown(turn: RowMapping) -> TurnOut:
    """A turn's row as it is given to clients."""
    return TurnOut(
        **turns.result(turn), text=turn["text"], created_at=isoformat(turn["created_at"])
    )


async def streamed(gateway: Gateway, caller: Principal, turn_id: str, after: int) -> Response:
    """The turn's events after seq `after`: first those that are stored, then live.

    An ended turn of which the client has every event answers 204, at which an EventSource stops.
    Raises: NotFoundError.
    """
    async with gateway.db.reading() as sql:
        turn = await turns.load_turn(sql, caller.tenant, turn_id)
        newest = await turns.last_seq(sql, turn_id)
    if turn["state"] in turns.FINAL_STATES and after >= newest:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    events = gateway.replies.follow(
        caller.tenant,
        turn_id,
        min(after, newest),
        heartbeat_s=gateway.settings.heartbeat_s,
        deaf=turn["reply_partition"] != gateway.reply_partition,
    )
    return EventStream(
        while_valid(frames(events), gateway.db, caller),
        send_timeout_s=gateway.settings.send_timeout_s,
    )


async def answered(gateway: Gateway, tenant: str, turn_id: str) -> TurnOut:
    """Wait for the turn's end, at most `answer_timeout_s`; the turn as it stands then."""
    events = gateway.replies.follow(tenant, turn_id, 0)
    try:
        async with asyncio.timeout(gateway.settings.answer_timeout_s):
            async for _ in events:
                pass
    except TimeoutError:
        pass  # the turn goes on; the caller is told where to look
    finally:
        await events.aclose()
    async with gateway.db.reading() as sql:
        return shown(await turns.load_turn(sql, tenant, turn_id))
