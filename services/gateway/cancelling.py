"""Ends turns that their users gave up, whoever works on them: alive, frozen, dead or nobody."""

from functools import partial

from libs.kernel import now_us
from libs.observability.metrics import TURN_SECONDS
from libs.storage.sql import turns
from libs.storage.sql.turn_events import reply_of
from services.gateway.deps import Gateway


async def cancel(gateway: Gateway, tenant: str, turn_id: str) -> None:
    """End the turn now. Its worker finds it ended at its next write, and hears of it before.

    Raises: NotFoundError.
    """
    terminal = await gateway.db.repeated(partial(turns.cancel, tenant=tenant, turn_id=turn_id))
    if terminal is not None:
        async with gateway.db.reading() as sql:
            turn = await turns.load_turn(sql, tenant, turn_id)
        TURN_SECONDS.labels("cancelled").observe((now_us() - int(turn["created_at"])) / 1e6)
        await gateway.announce(reply_of(tenant, terminal), turn["reply_partition"])
