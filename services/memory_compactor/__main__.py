"""The memory compactor: completed turns become conversations' memories."""

import asyncio

from libs.kernel import TransientError, end_tasks
from libs.service.process import Platform, open_platform
from libs.service.process import run as run_process
from services.memory_compactor.agents import FaustPolicy, build_app
from services.memory_compactor.settings import MemoryCompactorSettings


async def main(settings: MemoryCompactorSettings) -> None:
    async with open_platform(settings, "memory_compactor") as platform:
        if not await platform.connected():
            return
        settings.faust_dir.mkdir(parents=True, exist_ok=True)
        policy = FaustPolicy(
            settings.kafka,
            settings.faust_dir,
            settings.catch_up_interval_s,
        )
        app = build_app(platform.db, policy)
        joined = platform.health.reporter("consumer memory_compactor")
        joined("partitions")
        try:
            await app.start()
            joined(None)
            await _until_stopped(app, platform)
        finally:
            await app.stop()


async def _until_stopped(app: object, platform: Platform) -> None:
    """Raises: TransientError when Faust gave up; whoever started this process starts it again."""
    crashed = asyncio.create_task(app.wait_until_stopped())  # type: ignore[attr-defined]
    asked = asyncio.create_task(platform.stopping.wait())
    await asyncio.wait({crashed, asked}, return_when=asyncio.FIRST_COMPLETED)
    await end_tasks(crashed, asked)
    if not platform.stopping.is_set():
        raise TransientError("Faust stopped by itself")


def run() -> None:
    settings = MemoryCompactorSettings()
    run_process(lambda: main(settings), "memory_compactor", log_level=settings.log_level)


if __name__ == "__main__":
    run()
