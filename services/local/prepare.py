"""What must exist before services start: tables, an API key, topics and the broker's epoch.

Safe to repeat; runs again whenever the embedded broker came back empty.
"""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from libs.eventbus.preparation import prepare_broker
from libs.storage.room import file_error
from libs.storage.sql import Database, api_keys, open_database
from services.local.settings import LocalSettings

LOCAL_TENANT = "local"
BROKER_TIMEOUT_S = 30.0


def prepare(settings: LocalSettings) -> None:
    """Blocking entry for a child process."""
    asyncio.run(_prepare(settings))


async def _prepare(settings: LocalSettings) -> None:
    db = open_database(settings.sql_url)
    try:
        await db.create_schema()
        await make_api_key(db, settings)
        kafka = replace(settings.kafka, bootstrap=os.environ["KAFKA_BOOTSTRAP"])
        await prepare_broker(kafka, db, embedded=settings.embeds_broker, timeout_s=BROKER_TIMEOUT_S)
    finally:
        await db.close()


async def make_api_key(db: Database, settings: LocalSettings) -> None:
    """Leave a key in the file that the database knows, after a crash or with a new one too."""
    file = settings.api_key_file
    if file.exists():
        async with db.reading() as sql:
            if await api_keys.authenticate(sql, file.read_text().strip()) is not None:
                return
    made = file.with_suffix(".new")
    async with db.work() as sql:
        key = await api_keys.create(sql, LOCAL_TENANT, role="admin", name="local")
        _write(made, key.clear)  # before the commit: no key is made that cannot be kept
    made.replace(file)


def _write(file: Path, key: str) -> None:
    """Raises: TransientError, DiskError."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as target:
            target.write(f"{key}\n")
    except OSError as exc:
        raise file_error(exc, str(file)) from exc
