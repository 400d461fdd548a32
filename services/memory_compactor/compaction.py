"""Bringing conversations' memories up to date with their finished turns."""

import structlog

from libs.kernel import NotFoundError, TransientError
from libs.storage.sql import Database
from libs.storage.sql.memories import (
    conversations_behind,
    load_memory,
    replace_memory,
    unfolded_exchanges,
)
from libs.storage.sql.turns import load_conversation
from services.memory_compactor.domain.folding import fold

log = structlog.get_logger(__name__)


async def compact(db: Database, tenant: str, conversation_id: str) -> int:
    """Fold every finished turn that the memory does not cover yet; returns how many there were.

    Safe to repeat and to run twice at once: the memory says up to where it was folded, and is only
    replaced from there. An event that got lost is made up for by any later call.
    """
    folded_count = 0
    while True:
        try:
            async with db.reading() as sql:
                conversation = await load_conversation(sql, tenant, conversation_id)
                memory = await load_memory(sql, tenant, conversation_id)
                exchanges = await unfolded_exchanges(
                    sql, tenant, conversation_id, memory.folded_turn_seq
                )
        except NotFoundError:
            log.warning("unknown_conversation_dropped", conversation_id=conversation_id)
            return folded_count
        if not exchanges:
            return folded_count
        folded = fold(memory, exchanges, strategy=conversation["memory"])
        async with db.work() as sql:
            replaced = await replace_memory(
                sql, tenant, conversation_id, folded, expect_folded=memory.folded_turn_seq
            )
        if not replaced:
            return folded_count
        folded_count += len(exchanges)


async def catch_up(db: Database) -> int:
    """`compact` every conversation that is behind; returns how many turns were folded.

    One that cannot be folded is left for the next time; those behind it are not. Raises:
    TransientError when SQL is away.
    """
    folded_count, after = 0, ""
    while True:
        async with db.reading() as sql:
            behind = await conversations_behind(sql, after)
        if not behind:
            return folded_count
        for row in behind:
            try:
                folded_count += await compact(db, row["tenant"], row["id"])
            except TransientError:
                raise
            except Exception:
                log.exception("conversation_not_folded", conversation_id=row["id"])
        after = behind[-1]["id"]
