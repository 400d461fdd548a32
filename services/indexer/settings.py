"""What the indexer reads from the environment besides the platform's settings."""

from pydantic import Field

from libs.service.settings import PlatformSettings


class IndexerSettings(PlatformSettings):
    # Processes that embed passages, each on one core at the lowest priority; 0 is one per core.
    embed_workers: int = Field(default=0, ge=0, validation_alias="SLUICE_EMBED_WORKERS")
