"""The platform's stores, opened by the command itself.

`fsck` does not ask the gateway: it must work when that is down, and comparing stores through one
service would trust that service. It reads the same settings as every service, so it works beside
the local stack (from its folder, or with SLUICE_HOME) and wherever DATABASE_URL, S3_ENDPOINT,
MILVUS_URI and the data folder are given. It sees every tenant, as whoever can open the stores can.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.kernel import PermanentError, TransientError
from libs.service.fsck import Stores
from libs.service.objects import open_objects
from libs.service.search import open_search
from libs.storage.sql import active_index, open_database
from services.cli.errors import CliError, ExitCode
from services.cli.settings import CliSettings


@asynccontextmanager
async def open_stores(settings: CliSettings) -> AsyncIterator[Stores]:
    """Raises: CliError for settings that cannot be right, when a store is away, or when there is
    nothing in this folder.
    """
    if not settings.database_url and not (settings.home / "sluice.db").exists():
        raise CliError(
            f"no platform keeps its data in {settings.home.absolute()}: set SLUICE_HOME to the "
            "folder that `sluice up` uses, or DATABASE_URL",
            ExitCode.UNREACHABLE,
        )
    logging.getLogger("pymilvus").setLevel(logging.ERROR)  # warns of each listing on Milvus Lite
    platform = settings.with_stores()
    db = open_database(platform.sql_url)
    try:
        async with db.reading() as sql:
            await active_index.read(sql)  # there is something to compare with
        async with open_search(platform) as search, open_objects(platform) as objects:
            yield Stores(db, objects, search.vectors, search.keywords)
    except PermanentError as exc:
        raise CliError(exc.detail, ExitCode.USAGE) from exc
    except TransientError as exc:
        raise CliError(f"a store is away: {exc}", ExitCode.UNREACHABLE) from exc
    finally:
        await db.close()
