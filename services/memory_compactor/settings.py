"""Settings that only the memory compactor reads."""

from pathlib import Path

from pydantic import Field

from libs.service.settings import PlatformSettings


class MemoryCompactorSettings(PlatformSettings):
    # Conversations whose event got lost are looked for this often.
    catch_up_interval_s: float = Field(
        default=30.0, validation_alias="SLUICE_MEMORY_CATCH_UP_INTERVAL_S"
    )

    @property
    def faust_dir(self) -> Path:
        return self.home / "faust"
