"""The parser process."""

import asyncio

from libs.contracts import DocumentControl
from libs.service.process import open_platform
from libs.service.process import run as run_process
from libs.storage.objects import DiskObjectStore
from services.ingest.parser.adapters.pool import open_pool
from services.ingest.parser.handlers import Deps, subscriptions
from services.ingest.parser.settings import ParserSettings


async def main(settings: ParserSettings) -> None:
    async with (
        open_platform(settings, "parser") as platform,
        open_pool(settings.parser_children, settings.limits) as pool,
    ):
        objects = DiskObjectStore(settings.objects_dir)
        await objects.sweep()
        deps = Deps(platform.db, objects, pool)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(platform.listen(DocumentControl, deps.watch.on_control))
            tasks.create_task(
                platform.consume(subscriptions(deps), group_id="parser", lanes=("", "urgent"))
            )


def run() -> None:
    settings = ParserSettings()
    run_process(lambda: main(settings), "parser", log_level=settings.log_level)


if __name__ == "__main__":
    run()
