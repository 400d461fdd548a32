"""Turns as clients see them, and the wait for a whole answer."""

import asyncio

from sqlalchemy import RowMapping

from libs.kernel import isoformat
from libs.storage.sql import turns
from services.gateway.deps import Gateway
from services.gateway.schemas import TurnOut


def shown(turn: RowMapping) -> TurnOut:
    """A turn's row as it is given to clients."""
    return TurnOut(
        **turns.result(turn), text=turn["text"], created_at=isoformat(turn["created_at"])
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
