"""The object store as every process opens it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from libs.kernel import PermanentError, end_tasks
from libs.service.settings import PlatformSettings
from libs.service.watching import watch
from libs.storage.objects import DiskObjectStore
from libs.storage.ports import ObjectStore

if TYPE_CHECKING:  # the client takes 0.4 s and 30 MB to import: only where there is a bucket
    from libs.storage.objects.s3 import S3ObjectStore

Report = Callable[[str | None], None]


@asynccontextmanager
async def open_objects(
    settings: PlatformSettings, report: Report | None = None
) -> AsyncIterator[ObjectStore]:
    """The bucket at S3_ENDPOINT, or files in the data folder.

    Opens at once, even when the server is away: uses raise TransientError until it is there.

    Args:
        report: Hears what is missing (`objects`) or None, for as long as the block runs.

    Raises: PermanentError for settings that cannot be right.
    """
    if not settings.s3_endpoint:
        yield DiskObjectStore(settings.objects_dir)
        return
    store = _bucket(settings)
    watching = (
        asyncio.create_task(watch(store.check, "objects", report)) if report is not None else None
    )
    try:
        yield store
    finally:
        if watching is not None:
            await end_tasks(watching)
        await store.close()


def _bucket(settings: PlatformSettings) -> "S3ObjectStore":
    from libs.storage.objects.s3 import S3ObjectStore
    from libs.storage.objects.s3_access import S3Access

    if not settings.s3_access_key or not settings.s3_secret_key:
        detail = "S3_ENDPOINT is set: set S3_ACCESS_KEY and S3_SECRET_KEY too"
        raise PermanentError("bad-setting", detail)
    access = S3Access(
        str(settings.s3_endpoint),
        settings.s3_bucket,
        settings.s3_access_key,
        settings.s3_secret_key,
        settings.s3_public_endpoint,
    )
    try:
        return S3ObjectStore(access)
    except ValueError as exc:
        raise PermanentError("bad-setting", str(exc)) from exc
