"""The chunker process."""

import asyncio

from libs.contracts import DocumentControl
from libs.service.chunking import open_helpers
from libs.service.objects import open_objects
from libs.service.process import open_platform
from libs.service.process import run as run_process
from services.chunker.handlers import Deps, subscriptions
from services.chunker.settings import ChunkerSettings


async def main(settings: ChunkerSettings) -> None:
    async with (
        open_platform(settings, "chunker") as platform,
        open_helpers(settings, platform.db) as helpers,
        open_objects(settings, platform.health.reporter("objects")) as objects,
    ):
        deps = Deps(platform.db, objects, helpers=helpers)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(platform.listen(DocumentControl, deps.watch.on_control))
            tasks.create_task(
                platform.consume(subscriptions(deps), group_id="chunker", lanes=("", "urgent"))
            )


def run() -> None:
    settings = ChunkerSettings()
    run_process(lambda: main(settings), "chunker", log_level=settings.log_level)


if __name__ == "__main__":
    run()
