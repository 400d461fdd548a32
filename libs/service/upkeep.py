"""What runs beside a process's own work: connecting, relaying, watching, the heartbeat."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import structlog

from libs.contracts.codec import REGISTRY, default_codec
from libs.contracts.store import schema_store
from libs.eventbus.connection import KafkaConnection
from libs.eventbus.epoch import EpochWatcher, ensure_epoch, has_every_topic
from libs.eventbus.publisher import KafkaPublisher
from libs.eventbus.reaching import UNREACHABLE, problem_of
from libs.eventbus.registry import SchemaRegistry
from libs.eventbus.relay import Relay
from libs.eventbus.sweep import Sweep
from libs.kernel import TransientError, new_id, now_us
from libs.service.health import Health
from libs.service.housekeeping import Housekeeper
from libs.storage.sql import Database
from libs.storage.sql.workers import Worker, beat, leave

log = structlog.get_logger(__name__)

HEARTBEAT_S = 2.0
DRAIN_S = 2.0  # the rest is swept by others
UNPREPARED_PATIENCE_S = 5.0


class Upkeep:
    """Connects to SQL and the broker, whenever they come, and keeps the process's row fresh."""

    def __init__(
        self,
        service: str,
        db: Database,
        kafka: KafkaConnection,
        publisher: KafkaPublisher,
        housekeeper: Housekeeper,
        registry: SchemaRegistry | None = None,
    ) -> None:
        self.health = Health()
        self._codec = default_codec()
        self.epoch = EpochWatcher(db, kafka)
        self.sql_there = asyncio.Event()
        self.broker_there = asyncio.Event()
        self.schemas_there = asyncio.Event()
        self._registry = registry
        if registry is not None:
            self._codec.ids_come_later(registry.schema)
        self.worker = Worker(new_id(), service, socket.gethostname(), os.getpid(), now_us())
        self._db = db
        self._kafka = kafka
        self._publisher = publisher
        self._relay = Relay(db, publisher, lambda: self.epoch.current)
        db.after_commit = self._relay.after_commit
        self._housekeeper = housekeeper
        self._patient_until = asyncio.get_running_loop().time() + UNPREPARED_PATIENCE_S
        self._log_is_new = asyncio.Event()
        self.epoch.on_new_log(self._log_is_new.set)
        self.health.report("sql", "sql")
        self.health.report("broker", UNREACHABLE)
        if registry is not None:
            self.health.report("schemas", REGISTRY)

    async def run(self) -> None:
        """Until cancelled. Ends with an error only if something here is wrong."""
        async with asyncio.TaskGroup() as tasks:
            starts = (self._connect_sql, self._connect_broker, self._register_schemas)
            for work in (*starts, self._relay.run):
                tasks.create_task(work())
            await self.sql_there.wait()
            sweep = Sweep(self._db, self._relay)
            beside = (sweep.run, self._housekeeper.run, self.epoch.run)
            for work in (self._beat, self._probe_broker, *beside):
                tasks.create_task(work())

    async def drain(self) -> None:
        """Send what was committed, as far as the broker takes it."""
        await self._relay.drain(DRAIN_S)

    async def close(self) -> None:
        """Disconnect; `run` must have ended."""
        await self._publisher.close()
        if self._registry is not None:
            await self._registry.close()
        with suppress(TransientError):
            async with self._db.work() as sql:
                await leave(sql, self.worker.id)
        await self._db.close()

    async def _connect_sql(self) -> None:
        await _patiently(self._schema, "sql_not_there")
        self.sql_there.set()
        self.health.report("sql", None)

    async def _schema(self) -> None:
        try:
            await self._db.check_schema()
        except TransientError as exc:
            self.health.report("sql", exc.missing or "sql")
            raise

    async def _register_schemas(self) -> None:
        """Raises: PermanentError when the registry refuses a schema: this version can't run."""
        if self._registry is not None:
            await _patiently(self._registered, "schemas_not_registered")
            self.health.report("schemas", None)
        self.schemas_there.set()

    async def _registered(self) -> None:
        assert self._registry is not None  # noqa: S101 - its caller looked
        try:
            self._codec.use_ids(await self._registry.register(schema_store()))
        except TransientError as exc:
            self.health.report("schemas", exc.missing or REGISTRY)
            raise

    async def _connect_broker(self) -> None:
        await self.sql_there.wait()
        # Nothing is sent before the log has its epoch: rows keep the epoch they were sent in.
        await _patiently(self._explained(self._prepared), "broker_not_prepared")
        await _patiently(self._explained(self._publisher.start), "broker_not_there")
        while True:
            self.broker_there.set()
            self.health.report("broker", None)
            await self._log_is_new.wait()
            self._log_is_new.clear()
            await _patiently(self._explained(self._publisher.renew), "broker_not_there")

    def _explained(self, attempt: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """The attempt; when it fails for the connection, readiness and the error say why."""

        async def attempt_or_explain() -> None:
            try:
                await attempt()
            except TransientError as exc:
                if (problem := await problem_of(self._kafka)) is None:
                    raise
                self.health.report("broker", problem)
                raise TransientError(f"{exc}; {problem}", missing=problem) from exc

        return attempt_or_explain

    async def _prepared(self) -> None:
        """Topics and epoch come from whoever starts the stack. A log that has its topics, but gets
        no epoch, is given one here in the end. Raises: TransientError: not yet.
        """
        if not await self.epoch.verify():
            self.health.report("broker", "topics")
            late = asyncio.get_running_loop().time() > self._patient_until
            if not (late and await has_every_topic(self._kafka)):
                raise TransientError("the broker has no topics yet: `sluice topics apply`")
            await ensure_epoch(self._kafka, self._db)
            await self.epoch.refresh()

    async def _probe_broker(self) -> None:
        await self.broker_there.wait()
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            answers = await self._publisher.answers()
            problem = None if answers else await problem_of(self._kafka) or UNREACHABLE
            self.health.report("broker", problem)

    async def _beat(self) -> None:
        while True:
            self.health.changed.clear()
            try:
                async with self._db.work() as sql:
                    await beat(sql, self.worker, self.health.missing)
                self.health.report("sql", None)
            except TransientError as exc:
                self.health.report("sql", exc.missing or "sql")
                log.warning("heartbeat_not_written", error=str(exc))
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S):
                    await self.health.changed.wait()


async def _patiently(attempt: Callable[[], Awaitable[Any]], complaint: str) -> None:
    """Try until it works: no process ends because a backend is not there yet."""
    pause_s = 0.1
    while True:
        try:
            await attempt()
        except TransientError as exc:
            log.warning(complaint, error=str(exc), next_try_in_s=pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 2.0)
        else:
            return
