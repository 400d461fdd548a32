"""The executor: planned turns get their answers."""

import asyncio

import structlog

from libs.contracts import TurnControl
from libs.kernel import TransientError, set_within
from libs.retrieval import Retriever
from libs.service.chat import open_chat
from libs.service.lease_keeper import LeaseKeeper
from libs.service.process import Platform, open_platform
from libs.service.process import run as run_process
from libs.service.search import PROBE_TENANT, open_search
from libs.service.turn_journal import ReplyFanOut
from services.executor.cancellation import RunningTurns
from services.executor.handlers import Deps, subscriptions
from services.executor.run import Tools
from services.executor.settings import ExecutorSettings

log = structlog.get_logger(__name__)

RETRY_S = 1.0


async def main(settings: ExecutorSettings) -> None:
    async with (
        open_platform(settings, "executor") as platform,
        open_search(settings) as search,
        ReplyFanOut(platform.publisher) as fan_out,
        open_chat(settings, platform.db) as model,
    ):
        retriever = search.retriever(platform.db)
        if not await _searchable(platform, retriever):
            return
        running = RunningTurns(platform.db)
        deps = Deps(
            platform.db,
            LeaseKeeper(platform.db),
            running,
            fan_out,
            Tools(retriever, model, settings.answer_max_tokens),
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(platform.listen(TurnControl, running.on_control))
            tasks.create_task(platform.consume(subscriptions(deps), group_id="executor"))


async def _searchable(platform: Platform, retriever: Retriever) -> bool:
    """Wait until a search works, which also loads the model; False: told to stop before.

    Turns wait in the topic meanwhile, instead of using up their tries.
    """
    report = platform.health.reporter("search")
    report("search")
    while await platform.connected():
        try:
            await retriever.search(PROBE_TENANT, "probe", limit=1)
        except TransientError as exc:
            log.info("search_awaited", reason=str(exc))
            await set_within(platform.stopping, RETRY_S)
        else:
            report(None)
            return True
    return False


def run() -> None:
    settings = ExecutorSettings()
    run_process(lambda: main(settings), "executor", log_level=settings.log_level)


if __name__ == "__main__":
    run()
