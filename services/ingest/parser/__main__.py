"""The parser process."""

import asyncio
from functools import partial

from libs.contracts import DocumentControl
from libs.service.objects import open_objects
from libs.service.process import open_platform
from libs.service.process import run as run_process
from libs.service.regularly import regularly
from libs.service.watching import watch
from services.ingest.parser.adapters.pool import open_pool
from services.ingest.parser.adapters.tika_check import check_tika
from services.ingest.parser.handlers import Deps, subscriptions
from services.ingest.parser.settings import ParserSettings

SWEEP_S = 600.0


async def main(settings: ParserSettings) -> None:
    async with (
        open_platform(settings, "parser") as platform,
        open_pool(
            settings.parser_children, settings.limits, tika_url=settings.tika_url or None
        ) as pool,
        open_objects(settings, platform.health.reporter("objects")) as objects,
    ):
        deps = Deps(platform.db, objects, pool)
        async with asyncio.TaskGroup() as tasks:
            if settings.tika_url:
                check = partial(check_tika, settings.tika_url)
                report = platform.health.reporter("tika")
                tasks.create_task(watch(check, "tika", report, stop=platform.stopping))
            tasks.create_task(platform.listen(DocumentControl, deps.watch.on_control))
            tasks.create_task(
                platform.consume(subscriptions(deps), group_id="parser", lanes=("", "urgent"))
            )
            tasks.create_task(
                regularly(
                    objects.sweep,
                    "unfinished writes",
                    interval_s=SWEEP_S,
                    stop=platform.stopping,
                )
            )


def run() -> None:
    settings = ParserSettings()
    run_process(lambda: main(settings), "parser", log_level=settings.log_level)


if __name__ == "__main__":
    run()
