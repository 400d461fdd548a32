"""Settings that only the executor reads."""

from pydantic import Field

from libs.service.settings import PlatformSettings


class ExecutorSettings(PlatformSettings):
    answer_max_tokens: int = Field(default=800, validation_alias="SLUICE_ANSWER_MAX_TOKENS")
