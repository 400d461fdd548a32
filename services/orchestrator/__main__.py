"""The orchestrator: turns get their plans."""

from libs.service.process import open_platform
from libs.service.process import run as run_process
from libs.service.turn_journal import ReplyFanOut
from services.orchestrator.adapters.rules import RulePlanner
from services.orchestrator.handlers import Deps, subscriptions
from services.orchestrator.settings import OrchestratorSettings


async def main(settings: OrchestratorSettings) -> None:
    async with (
        open_platform(settings, "orchestrator") as platform,
        ReplyFanOut(platform.publisher) as fan_out,
    ):
        deps = Deps(platform.db, RulePlanner(), fan_out)
        await platform.consume(subscriptions(deps), group_id="orchestrator")


def run() -> None:
    settings = OrchestratorSettings()
    run_process(lambda: main(settings), "orchestrator", log_level=settings.log_level)


if __name__ == "__main__":
    run()
