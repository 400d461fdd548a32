"""The ingest API's process: HTTP, the reconciler of documents and the sweep of orphans."""

import asyncio

from libs.kernel import now_us
from libs.service.chunking import open_helpers
from libs.service.objects import open_objects
from libs.service.process import open_platform, serve_http
from libs.service.process import run as run_process
from libs.service.regularly import regularly
from libs.service.unfinished import DELETIONS, PIPELINE
from services.ingest.api.app import create_app
from services.ingest.api.deps import Ingest
from services.ingest.api.orphans import sweep
from services.ingest.api.room_watch import watch
from services.ingest.api.settings import IngestApiSettings


async def main(settings: IngestApiSettings) -> None:
    async with (
        open_platform(settings, "ingest") as platform,
        open_objects(settings, platform.health.reporter("objects")) as objects,
        open_helpers(settings, platform.db) as helpers,
        asyncio.TaskGroup() as tasks,
    ):
        room = settings.room
        ingest = Ingest(
            platform.db,
            objects,
            settings.max_upload_bytes,
            settings.progress_poll_s,
            room,
            helpers,
        )
        app = create_app(
            ingest, missing=platform.health.names, allowed_hosts=settings.allowed_hosts
        )
        tasks.create_task(
            serve_http(
                app,
                settings.host,
                settings.ingest_port,
                setting="SLUICE_INGEST_PORT",
                stop=platform.stopping,
            )
        )
        if room is not None:
            report = platform.health.reporter("room")
            tasks.create_task(watch(room, report, stop=platform.stopping))
        tasks.create_task(platform.reconcile(PIPELINE, DELETIONS))
        age_us = int(settings.orphan_age_s * 1e6)
        tasks.create_task(
            regularly(
                lambda: sweep(platform.db, objects, before_us=now_us() - age_us),
                "orphans",
                interval_s=settings.orphan_sweep_s,
                stop=platform.stopping,
            )
        )


def run() -> None:
    settings = IngestApiSettings()
    run_process(lambda: main(settings), "ingest", log_level=settings.log_level)


if __name__ == "__main__":
    run()
