"""Ends turns that their users gave up, whoever runs them, even nobody."""

from libs.storage.sql import leases, turns
from libs.storage.sql.turn_events import TurnEvent, reply_of
from libs.storage.sql.work import UnitOfWork
from services.gateway.deps import Gateway


async def cancel(gateway: Gateway, tenant: str, turn_id: str) -> None:
    """Flag the turn and tell its executor; when nobody runs it, end it here.

    Raises: NotFoundError.
    """
    async with gateway.db.work() as sql:
        turn = await turns.load_turn(sql, tenant, turn_id)
        await turns.request_cancel(sql, tenant, turn_id)
        terminal = await end_unattended(sql, tenant, turn_id)
    if terminal is not None:
        await gateway.announce(reply_of(tenant, terminal), turn["reply_partition"])


async def end_unattended(sql: UnitOfWork, tenant: str, turn_id: str) -> TurnEvent | None:
    """End a cancelled turn, unless somebody holds its lease and so will end it."""
    if await leases.live(sql, [f"turn:{turn_id}"]):
        return None
    return await turns.finish(sql, tenant, turn_id, turns.Outcome("cancelled"))
