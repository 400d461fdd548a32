"""One turn: its state, its events from any point on, and its end before its time."""

from typing import Annotated

from fastapi import APIRouter, Header, status
from fastapi.responses import Response

from libs.storage.sql import turns
from libs.web import Reader
from libs.web.sse import last_event_id as seq_of
from services.gateway.answers import shown, streamed
from services.gateway.cancelling import cancel
from services.gateway.deps import GatewayDep
from services.gateway.schemas import TurnOut

router = APIRouter(prefix="/v1/turns", tags=["turns"])


@router.get("/{turn_id}")
async def get_turn(gateway: GatewayDep, caller: Reader, turn_id: str) -> TurnOut:
    async with gateway.db.reading() as sql:
        return shown(await turns.load_turn(sql, caller.tenant, turn_id))


@router.get(
    "/{turn_id}/events",
    status_code=status.HTTP_200_OK,
    response_class=Response,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "The events, live"},
        204: {"description": "The client has every event already."},
    },
)
async def follow_turn(
    gateway: GatewayDep,
    caller: Reader,
    turn_id: str,
    last_event_id: Annotated[str, Header()] = "",
) -> Response:
    """The turn's events after `Last-Event-ID`: first those that are stored, then live."""
    return await streamed(gateway, caller, turn_id, seq_of(last_event_id))


@router.delete("/{turn_id}", status_code=status.HTTP_202_ACCEPTED)
async def cancel_turn(gateway: GatewayDep, caller: Reader, turn_id: str) -> TurnOut:
    """Stop the turn within two seconds. Repeating it, or cancelling an ended turn, is harmless."""
    await cancel(gateway, caller.tenant, turn_id)
    async with gateway.db.reading() as sql:
        return shown(await turns.load_turn(sql, caller.tenant, turn_id))
