"""Conversations and the turns that are asked in them."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, status
from fastapi.responses import JSONResponse, Response
from sqlalchemy import RowMapping

from libs.kernel import Principal, isoformat
from libs.storage.sql import UnitOfWork, turns
from libs.web import IdempotencyKey, Reader, problems
from libs.web.sse import last_event_id as seq_of
from services.gateway.answers import answered, shown, streamed
from services.gateway.deps import Asker, Gateway, GatewayDep
from services.gateway.limits import check_length
from services.gateway.schemas import ConversationIn, ConversationOut, Created, TurnIn, TurnOut

router = APIRouter(prefix="/v1/conversations", tags=["conversations"])

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}, "application/json": {}}},
    202: {"model": TurnOut, "description": "Not answered yet: follow `Location`."},
    204: {"description": "The client has every event already."},
    **problems(409, 429),
}


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_conversation(
    gateway: GatewayDep,
    caller: Reader,
    body: ConversationIn | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Created:
    wanted = body or ConversationIn()

    async def create(sql: UnitOfWork) -> str:
        return await turns.create_conversation(
            sql,
            caller.tenant,
            agent=wanted.agent,
            memory=wanted.memory,
            idempotency_key=idempotency_key,
        )

    return Created(id=await gateway.db.repeated(create))


@router.get("/{conversation_id}")
async def get_conversation(
    gateway: GatewayDep, caller: Reader, conversation_id: str
) -> ConversationOut:
    async with gateway.db.reading() as sql:
        row = await turns.load_conversation(sql, caller.tenant, conversation_id)
        asked = await turns.list_turns(sql, caller.tenant, conversation_id)
    return ConversationOut(
        id=row["id"],
        agent=row["agent"],
        memory=row["memory"],
        created_at=isoformat(row["created_at"]),
        turns=[shown(turn) for turn in asked],
    )


@router.post("/{conversation_id}/turns", response_model=TurnOut, responses=_STREAM)
async def ask(
    gateway: GatewayDep,
    caller: Asker,
    conversation_id: str,
    body: TurnIn,
    accept: Annotated[str, Header()] = "",
    idempotency_key: IdempotencyKey = None,
    last_event_id: Annotated[str, Header()] = "",
) -> Response:
    """Ask a question. With `Accept: text/event-stream` the answer comes as events, else whole.

    Repeated with its `Idempotency-Key`, after a cut connection say, a question is not asked again:
    the answer is that of the first one, as events those after `Last-Event-ID`.
    """
    after = seq_of(last_event_id)
    turn = await _store(gateway, caller, conversation_id, body.text, idempotency_key)
    if "text/event-stream" in accept:
        return await streamed(gateway, caller, turn["id"], after if idempotency_key else 0)
    result = await answered(gateway, caller.tenant, turn["id"])
    code = status.HTTP_200_OK if result.state in turns.FINAL_STATES else status.HTTP_202_ACCEPTED
    headers = {"Location": f"/v1/turns/{result.turn_id}"}
    return JSONResponse(result.model_dump(), status_code=code, headers=headers)


async def _store(
    gateway: Gateway, caller: Principal, conversation_id: str, text: str, key: str | None
) -> RowMapping:
    check_length(text, gateway.settings.max_question_chars)

    async def create(sql: UnitOfWork) -> RowMapping:
        return await turns.create_turn(
            sql,
            caller.tenant,
            conversation_id,
            text,
            gateway.reply_partition,
            idempotency_key=key,
        )

    return await gateway.db.repeated(create)
