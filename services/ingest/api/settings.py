"""What the ingest API reads from the environment."""

from pydantic import Field

from libs.service.settings import PlatformSettings
from libs.storage.room import Room


class IngestApiSettings(PlatformSettings):
    max_upload_bytes: int = Field(
        default=512 * 1024 * 1024, validation_alias="SLUICE_MAX_UPLOAD_BYTES", gt=0
    )
    # So much of the disk is not for uploads: what was accepted needs it to come to its end.
    min_free_mb: int = Field(default=200, validation_alias="SLUICE_MIN_FREE_MB", ge=0)
    # How often an open progress stream looks for news in SQL.
    progress_poll_s: float = Field(default=0.4, validation_alias="SLUICE_PROGRESS_POLL_S", gt=0)
    # Objects that no document refers to are removed when older than this: an upload in progress
    # is such an object until it is done.
    orphan_age_s: float = Field(default=6 * 3600.0, validation_alias="SLUICE_ORPHAN_AGE_S", gt=0)
    orphan_sweep_s: float = Field(default=3600.0, validation_alias="SLUICE_ORPHAN_SWEEP_S", gt=0)

    @property
    def room(self) -> Room | None:
        """None: nothing of an upload stays on this machine's disk."""
        if self.s3_endpoint and self.database_url:
            return None
        return Room(self.home, self.min_free_mb * 1_000_000)
