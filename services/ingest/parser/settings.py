"""What the parser reads from the environment."""

from pydantic import Field

from libs.service.settings import PlatformSettings
from services.ingest.parser.adapters.child import Limits


class ParserSettings(PlatformSettings):
    """Bounds on one file, and how many are read at a time."""

    parser_children: int = Field(default=2, ge=1, validation_alias="SLUICE_PARSER_CHILDREN")
    parse_timeout_s: float = Field(default=600.0, gt=0, validation_alias="SLUICE_PARSE_TIMEOUT_S")
    parse_memory_mb: int = Field(default=1500, ge=256, validation_alias="SLUICE_PARSE_MEMORY_MB")
    parse_max_chars: int = Field(
        default=10_000_000, ge=1, validation_alias="SLUICE_PARSE_MAX_CHARS"
    )

    # A Tika server that reads what is neither text nor picture; unset: Tika's native build does.
    tika_url: str | None = Field(default=None, validation_alias="TIKA_URL")
    ocr: bool = Field(default=True, validation_alias="SLUICE_OCR")
    ocr_max_pages: int = Field(default=1000, ge=1, validation_alias="SLUICE_OCR_MAX_PAGES")

    @property
    def limits(self) -> Limits:
        return Limits(
            timeout_s=self.parse_timeout_s,
            max_rss_bytes=self.parse_memory_mb * 1_000_000,
            max_chars=self.parse_max_chars,
            ocr=self.ocr,
            max_pictures=self.ocr_max_pages,
        )
