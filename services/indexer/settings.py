"""What the indexer reads from the environment besides the platform's settings."""

from pydantic import Field

from libs.service.settings import PlatformSettings


class IndexerSettings(PlatformSettings):
    # Processes that embed passages, each on one core at the lowest priority; 0 is one per core.
    embed_workers: int = Field(default=0, ge=0, validation_alias="SLUICE_EMBED_WORKERS")
    # What a configured model may be asked for one document's graph; 0: rules alone.
    graph_model_calls: int = Field(default=20, ge=0, validation_alias="SLUICE_GRAPH_MODEL_CALLS")
    # Rows that nothing can show are looked for this often; a generation that failed keeps its rows
    # for this long, to be resumed from.
    stale_sweep_s: float = Field(default=3600.0, gt=0, validation_alias="SLUICE_STALE_SWEEP_S")
    stale_age_s: float = Field(default=6 * 3600.0, gt=0, validation_alias="SLUICE_STALE_AGE_S")
