"""Settings that only the orchestrator reads."""

from pydantic import Field

from libs.service.settings import InteractiveSettings


class OrchestratorSettings(InteractiveSettings):
    # A model that has not planned by then is not waited for: the rules plan.
    planner_timeout_s: float = Field(default=4.0, validation_alias="SLUICE_PLANNER_TIMEOUT_S")
