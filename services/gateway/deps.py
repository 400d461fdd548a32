"""What the routes work with, built once by the composition root."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

import httpx
from fastapi import Depends, Request

from libs.contracts import TurnReply
from libs.eventbus.backlog import Backlogs
from libs.kernel import Principal
from libs.storage.sql import Database
from libs.web import Reader, rate_limited
from services.gateway.limits import RateLimit
from services.gateway.ports import Search
from services.gateway.replies import Replies
from services.gateway.settings import GatewaySettings

Announce = Callable[[TurnReply, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Gateway:
    """One replica: its stores, its fan-out partition and its limits.

    `announce` fans an event of a turn out to every gateway that may have a stream of it; what it
    cannot send, the streams find in SQL.
    """

    settings: GatewaySettings
    db: Database
    replies: Replies
    reply_partition: int
    announce: Announce
    search: Search
    ingest: httpx.AsyncClient
    backlogs: Backlogs
    missing: Callable[[], Awaitable[list[str]]]
    rate: RateLimit


def gateway_of(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


GatewayDep = Annotated[Gateway, Depends(gateway_of)]


async def within_rate(gateway: GatewayDep, caller: Reader) -> Principal:
    """The principal, if its key has not asked too many questions. Raises: ProblemError 429."""
    wait_s = gateway.rate.wait_s(caller.key_id)
    if wait_s > 0:
        after = math.ceil(wait_s)
        raise rate_limited(
            f"This key has asked too many questions; ask again in {after} s.", retry_after_s=after
        )
    return caller


Asker = Annotated[Principal, Depends(within_rate)]
