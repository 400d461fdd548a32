"""Settings that only the executor reads."""

from pydantic import Field

from libs.service.settings import InteractiveSettings


class ExecutorSettings(InteractiveSettings):
    answer_max_tokens: int = Field(default=800, validation_alias="SLUICE_ANSWER_MAX_TOKENS")
