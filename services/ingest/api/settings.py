"""What the ingest API reads from the environment."""

from pydantic import Field

from libs.service.settings import PlatformSettings


class IngestApiSettings(PlatformSettings):
    max_upload_bytes: int = Field(
        default=512 * 1024 * 1024, validation_alias="SLUICE_MAX_UPLOAD_BYTES", gt=0
    )
    # How often an open progress stream looks for news in SQL.
    progress_poll_s: float = Field(default=0.4, validation_alias="SLUICE_PROGRESS_POLL_S", gt=0)
    # Objects that no document refers to are removed when older than this: an upload in progress
    # is such an object until it is done.
    orphan_age_s: float = Field(default=6 * 3600.0, validation_alias="SLUICE_ORPHAN_AGE_S", gt=0)
    orphan_sweep_s: float = Field(default=3600.0, validation_alias="SLUICE_ORPHAN_SWEEP_S", gt=0)
