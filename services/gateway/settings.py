"""What the gateway reads from the environment."""

from pydantic import Field

from libs.service.http import SEND_TIMEOUT_S
from libs.service.settings import InteractiveSettings

TURNS_PER_MINUTE = 10


class GatewaySettings(InteractiveSettings):
    """Limits are per key or per question; 0 turns a limit off."""

    local: bool = Field(default=False, validation_alias="SLUICE_LOCAL")
    ingest_url: str | None = Field(default=None, validation_alias="SLUICE_INGEST_URL")
    max_question_chars: int = Field(default=8_000, validation_alias="SLUICE_MAX_QUESTION_CHARS")
    turns_per_minute: int | None = Field(
        default=None, ge=0, validation_alias="SLUICE_TURNS_PER_MINUTE"
    )
    heartbeat_s: float = Field(default=10.0, validation_alias="SLUICE_HEARTBEAT_S", le=15.0)
    # A question that nobody makes progress with for so long ends with an error.
    turn_patience_s: float = Field(default=600.0, ge=0, validation_alias="SLUICE_TURN_PATIENCE_S")
    # A client that takes nothing of its stream for so long is dropped; it may resume.
    send_timeout_s: float = Field(
        default=SEND_TIMEOUT_S, gt=0, validation_alias="SLUICE_SEND_TIMEOUT_S"
    )
    # How long a JSON request waits for its answer before it is told where to look for it.
    answer_timeout_s: float = Field(default=300.0, validation_alias="SLUICE_ANSWER_TIMEOUT_S")

    @property
    def turn_rate(self) -> int:
        """Questions a minute and key; a local platform is its user's alone, so it has no limit."""
        if self.turns_per_minute is not None:
            return self.turns_per_minute
        return 0 if self.local else TURNS_PER_MINUTE

    @property
    def ingest_base_url(self) -> str:
        return self.ingest_url or f"http://{self.host}:{self.ingest_port}"

    def local_key(self) -> str | None:
        """This machine's API key, for the local page; None unless in local mode."""
        if not self.local:
            return None
        try:
            return (self.home / "api-key").read_text().strip() or None
        except OSError:
            return None
