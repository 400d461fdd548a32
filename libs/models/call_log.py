"""`CallLog` on SQL."""

from typing import Any

import structlog
from sqlalchemy import func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from libs.kernel import SluiceError, new_id, now_us
from libs.models.ports import ModelCall
from libs.storage.sql import Database, UnitOfWork
from libs.storage.sql.tables import model_calls

log = structlog.get_logger(__name__)


async def usage_of(sql: UnitOfWork, turn_id: str) -> dict[str, Any]:
    """What the models cost that worked on a turn, its plan included."""
    row = await sql.first(
        select(
            func.count().label("model_calls"),
            func.coalesce(func.sum(model_calls.c.prompt_tokens), 0).label("prompt_tokens"),
            func.coalesce(func.sum(model_calls.c.completion_tokens), 0).label("completion_tokens"),
        ).where(model_calls.c.turn_id == turn_id)
    )
    return {name: int(value) for name, value in row.items()} if row else {}


class SqlCallLog:
    """Writes each call to `model_calls`; a record that cannot be written is only logged."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def record(self, call: ModelCall) -> None:
        try:
            async with self._db.work() as sql:
                await sql.execute(
                    insert(model_calls).values(
                        id=new_id(),
                        tenant=call.purpose.tenant,
                        turn_id=call.purpose.turn_id,
                        model=call.model,
                        purpose=call.purpose.name,
                        prompt_tokens=call.usage.prompt_tokens,
                        completion_tokens=call.usage.completion_tokens,
                        seconds=call.seconds,
                        outcome=call.outcome,
                        created_at=now_us(),
                    )
                )
        except (SluiceError, SQLAlchemyError) as exc:
            log.warning("model_call_not_recorded", error=type(exc).__name__)
