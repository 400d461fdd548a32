"""What must exist before services start: tables, an API key, topics and the broker's epoch.

Safe to repeat; runs again whenever the embedded broker came back empty.
"""

import asyncio
import os

from libs.eventbus.preparation import prepare_broker
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
        bootstrap = os.environ["KAFKA_BOOTSTRAP"]
        await prepare_broker(
            bootstrap, db, embedded=settings.embeds_broker, timeout_s=BROKER_TIMEOUT_S
        )
    finally:
        await db.close()


async def make_api_key(db: Database, settings: LocalSettings) -> None:
    """Leave a key in the file that the database knows, after a crash or with a new one too."""
    file = settings.api_key_file
    if file.exists():
        async with db.reading() as sql:
            if await api_keys.authenticate(sql, file.read_text().strip()) is not None:
                return
    async with db.work() as sql:
        key = await api_keys.create(sql, LOCAL_TENANT, role="admin", name="local")
    made = file.with_suffix(".new")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as target:
        target.write(f"{key.clear}\n")
    made.replace(file)
