"""The orchestrator: turns get their plans."""

from libs.models.ports import ChatModel
from libs.service.chat import open_chat
from libs.service.process import open_platform
from libs.service.process import run as run_process
from libs.service.turn_journal import ReplyFanOut
from services.orchestrator.adapters.model import ModelPlanner
from services.orchestrator.adapters.rules import RulePlanner
from services.orchestrator.handlers import Deps, subscriptions
from services.orchestrator.ports import Planner
from services.orchestrator.settings import OrchestratorSettings


async def main(settings: OrchestratorSettings) -> None:
    async with (
        open_platform(settings, "orchestrator") as platform,
        ReplyFanOut(platform.publisher) as fan_out,
        open_chat(settings, platform.db) as model,
    ):
        deps = Deps(platform.db, _planner(model, settings), fan_out)
        await platform.consume(subscriptions(deps), group_id="orchestrator")


def _planner(model: ChatModel | None, settings: OrchestratorSettings) -> Planner:
    if model is None:
        return RulePlanner()
    return ModelPlanner(model, timeout_s=settings.planner_timeout_s)


def run() -> None:
    settings = OrchestratorSettings()
    run_process(lambda: main(settings), "orchestrator", log_level=settings.log_level)


if __name__ == "__main__":
    run()
