"""What every process of the platform stands on: SQL, the broker, health, and an orderly end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from libs.eventbus import Consumer, Listener, Policies, Subscriptions
from libs.eventbus.backlog import KafkaBacklogs
from libs.eventbus.publisher import KafkaPublisher, Publisher
from libs.eventbus.reconciler import Reconciler, WorkSource
from libs.eventbus.registry import SchemaRegistry
from libs.eventbus.waiting import until_any
from libs.kernel import PermanentError, end_tasks, set_within
from libs.observability.exporting import exporting
from libs.service.health import Health
from libs.service.housekeeping import Housekeeper, HousekeepingPolicy
from libs.service.http import serve_http
from libs.service.settings import PlatformSettings
from libs.service.stopping import run, stopping
from libs.service.upkeep import Upkeep
from libs.storage.sql import Database, open_database
from libs.web.health import health_app

__all__ = ["Health", "Platform", "open_platform", "run", "serve_http", "stopping"]

E = TypeVar("E")

SQL_PATIENCE_S = 5.0


class Platform:
    """The parts a process shares. `stopping` is set when the process is to end."""

    def __init__(
        self, settings: PlatformSettings, db: Database, publisher: Publisher, upkeep: Upkeep
    ) -> None:
        self.settings = settings
        self.db = db
        self.publisher = publisher
        self.health = upkeep.health
        self.instance_id = upkeep.worker.id
        self.stopping = stopping()
        self._upkeep = upkeep

    async def connected(self) -> bool:
        """Wait until SQL, the schemas' ids and a prepared broker are there; False: told to stop."""
        upkeep = self._upkeep
        for there in (upkeep.sql_there, upkeep.schemas_there, upkeep.broker_there):
            await until_any(there.wait(), self.stopping.wait())
        return not self.stopping.is_set()

    async def consume(
        self,
        subscriptions: Subscriptions,
        *,
        group_id: str,
        lanes: Sequence[str] = ("",),
        policies: Policies | None = None,
    ) -> None:
        """Handle a group's events until the process is to end; then drain, commit and leave."""
        consumer = Consumer(
            self.settings.kafka,
            self.db,
            subscriptions,
            group_id=group_id,
            lanes=lanes,
            policies=policies,
            report=self.health.reporter(source := f"consumer {group_id}"),
        )
        await self._read(consumer, source)

    async def listen(
        self,
        event_type: type[E],
        handle: Callable[[E], Awaitable[None]],
        *,
        partitions: Collection[int] | None = None,
    ) -> None:
        """Hear every new event of a type, without a group, until the process is to end.

        Args:
            partitions: Which to read; None reads all.
        """
        listener = Listener(
            self.settings.kafka,
            event_type,
            handle,
            partitions=partitions,
            report=self.health.reporter(source := f"listener {event_type.__name__}"),
        )
        await self._read(listener, source)

    async def _read(self, reader: Consumer | Listener, source: str) -> None:
        self.health.report(source, "kafka")
        if await self.connected():
            self._upkeep.epoch.on_new_log(reader.new_epoch)
            await reader.run(self.stopping)

    async def reconcile(self, *sources: WorkSource) -> None:
        """Emit lost work again, now, regularly and when the broker lost its log, until the end."""
        reconciler = Reconciler(
            self.db,
            KafkaBacklogs(self.settings.kafka),
            lambda: self._upkeep.epoch.current,
            sources,
        )
        if await self.connected():
            self._upkeep.epoch.on_new_log(reconciler.wake)
            await reconciler.run(self.stopping)

    async def serve_health(self) -> None:
        """`/live`, `/ready` and `/metrics`, where a port is set for them."""
        if self.settings.health_port is None:
            return
        app = health_app(self.health.names, self.settings.allowed_hosts)
        host, port = self.settings.host, self.settings.health_port
        await serve_http(app, host, port, setting="SLUICE_HEALTH_PORT", stop=self.stopping)


@asynccontextmanager
async def open_platform(settings: PlatformSettings, service: str) -> AsyncIterator[Platform]:
    """The platform for one process, which writes its heartbeat under the name of its service.

    Opens at once, even when SQL or the broker is not there yet: the connections come when they
    can, `health` names what is missing, and meanwhile every use raises TransientError. SQL gets a
    few seconds first, so that a root may use it right away. At the end of the block: outbox rows
    are sent, background work ends, connections close.
    """
    _make_folder(settings.home)
    db = open_database(settings.sql_url)
    kafka = KafkaPublisher(settings.kafka)
    housekeeper = Housekeeper(
        db, settings.retention, HousekeepingPolicy(interval_s=settings.housekeeping_s)
    )
    registry_url = settings.schema_registry_url
    registry = SchemaRegistry(registry_url) if registry_url else None
    upkeep = Upkeep(service, db, settings.kafka, kafka, housekeeper, registry)
    platform = Platform(settings, db, kafka, upkeep)
    try:
        with exporting(settings.otlp_endpoint, service, settings.trace_ratio):
            async with asyncio.TaskGroup() as tasks:
                background = [tasks.create_task(upkeep.run())]
                background.append(tasks.create_task(platform.serve_health()))
                try:
                    await set_within(upkeep.sql_there, SQL_PATIENCE_S)
                    yield platform
                    await upkeep.drain()
                finally:
                    await end_tasks(*background)
    except ExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise
    finally:
        await upkeep.close()


def _make_folder(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        detail = f"cannot make {home.absolute()} ({exc.strerror}): make room, or set SLUICE_HOME"
        raise PermanentError("no-data-folder", detail) from exc
