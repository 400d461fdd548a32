"""`CallLog` on SQL."""

import structlog
from sqlalchemy import insert
from sqlalchemy.exc import SQLAlchemyError

from libs.kernel import SluiceError, new_id, now_us
from libs.models.ports import ModelCall
from libs.storage.sql import Database
from libs.storage.sql.tables import model_calls

log = structlog.get_logger(__name__)


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
