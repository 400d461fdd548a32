"""The Faust application: completed turns wake the folding of their conversation.

SQL is the truth and says up to where a conversation was folded, so an event that Faust loses (it
does not deliver one again whose handler raised) is made up for by the next one or by the timer.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust
import structlog

from libs.contracts import TurnCompleted, read, topic_of
from libs.contracts.record import SCHEMA
from libs.eventbus import KafkaConnection
from libs.eventbus.security import KafkaSecurity
from libs.kernel import PermanentError, SluiceError
from libs.storage.sql import Database
from services.memory_compactor.compaction import catch_up, compact

log = structlog.get_logger(__name__)

GROUP = "memory_compactor"


@dataclass(frozen=True, slots=True)
class FaustPolicy:
    """Where Faust connects and keeps its files, and its times in seconds."""

    kafka: KafkaConnection
    data_dir: Path
    catch_up_interval_s: float


def build_app(db: Database, policy: FaustPolicy) -> Any:
    """The application; make it inside the running event loop.

    Topics exist before anything connects, so Faust creates none; it has no web server.
    """
    kafka = policy.kafka
    app = faust.App(
        GROUP,
        broker=[f"kafka://{host}" for host in kafka.bootstrap.split(",")],
        broker_credentials=_credentials(kafka.security),
        store="memory://",
        datadir=str(policy.data_dir),
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        broker_session_timeout=kafka.session_timeout_s,
        broker_heartbeat_interval=kafka.session_timeout_s / 3,
        broker_commit_interval=1.0,
        consumer_auto_offset_reset="earliest",
        stream_wait_empty=False,
    )
    completed = app.topic(
        topic_of(TurnCompleted.__name__).name,
        key_type=bytes,
        key_serializer="raw",
        value_type=bytes,
        value_serializer="raw",
    )

    async def fold_completed_turns(stream: Any) -> None:
        async for record in stream.events():
            schema = dict(record.headers or {}).get(SCHEMA, b"")
            await on_completed(record.value, db, schema.decode(errors="replace"))

    async def fold_what_was_missed() -> None:
        await on_timer(db)

    app.agent(completed, name="fold_completed_turns")(fold_completed_turns)
    app.timer(policy.catch_up_interval_s, name="catch_up")(fold_what_was_missed)
    return app


def _credentials(security: KafkaSecurity) -> Any:
    if security.with_password:
        return faust.SASLCredentials(
            username=security.username,
            password=security.password,
            mechanism=security.mechanism,
            ssl_context=security.ssl_context(),
        )
    return faust.SSLCredentials(security.ssl_context()) if security.encrypted else None


async def on_completed(value: bytes, db: Database, schema: str = "") -> None:
    """Fold the conversation of one framed `TurnCompleted`; what fails now is caught up later.

    Args:
        schema: What its header says it was written with.
    """
    try:
        event = await read(value, schema)
        if isinstance(event, TurnCompleted):
            await compact(db, event.tenant, event.conversation_id)
    except PermanentError as exc:
        log.warning("event_dropped", reason=exc.reason, detail=exc.detail)
    except SluiceError as exc:
        log.warning("folding_postponed", error=str(exc))


async def on_timer(db: Database) -> None:
    """Fold what no event brought."""
    try:
        folded_count = await catch_up(db)
    except SluiceError as exc:
        log.warning("catch_up_postponed", error=str(exc))
        return
    if folded_count:
        log.info("missed_turns_folded", count=folded_count)
