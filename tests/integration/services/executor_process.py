"""An executor process on the real broker and database, with evidence that is always the same.

Run with the product's settings in the environment; ends on SIGTERM.
"""

import asyncio

from libs.contracts import TurnControl
from libs.service.chat import open_chat
from libs.service.lease_keeper import LeaseKeeper
from libs.service.process import open_platform, run
from libs.service.turn_journal import ReplyFanOut
from services.executor.cancellation import RunningTurns
from services.executor.handlers import Deps, subscriptions
from services.executor.run import Tools
from services.executor.settings import ExecutorSettings
from tests.fakes_answering import FakeEvidenceSource, refund_evidence


async def main() -> None:
    settings = ExecutorSettings()
    async with (
        open_platform(settings, "executor") as platform,
        ReplyFanOut(platform.publisher) as fan_out,
        open_chat(settings, platform.db) as model,
    ):
        running = RunningTurns(platform.db)
        tools = Tools(FakeEvidenceSource(refund_evidence()), model)
        deps = Deps(platform.db, LeaseKeeper(platform.db), running, fan_out, tools)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(platform.listen(TurnControl, running.on_control))
            tasks.create_task(platform.consume(subscriptions(deps), group_id="executor"))


if __name__ == "__main__":
    run(main, "executor")
