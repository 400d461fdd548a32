"""What the local stack reads from the environment."""

from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator

from libs.service.settings import PlatformSettings


class LocalSettings(PlatformSettings):
    """Ports and bounds of the embedded parts; each part gives way to a real server's setting."""

    broker_port: int = Field(default=19092, validation_alias="SLUICE_BROKER_PORT")
    milvus_port: int = Field(default=19530, validation_alias="SLUICE_MILVUS_PORT")
    # The embedded broker never frees memory: above this it is recycled in a quiet moment,
    # above twice this at once. An empty one takes 20 MB, and would be recycled for ever.
    broker_max_mb: int = Field(default=512, ge=24, validation_alias="SLUICE_BROKER_MAX_MB")
    # Processes of each service but gateway and ingest.
    replicas: int = Field(default=1, ge=1, le=16, validation_alias="SLUICE_REPLICAS")
    stop_timeout_s: float = Field(default=25.0, gt=0, validation_alias="SLUICE_STOP_TIMEOUT_S")

    @field_validator("replicas")
    @classmethod
    def _several_can_write(cls, replicas: int, info: ValidationInfo) -> int:
        if replicas > 1 and not info.data.get("elasticsearch_url"):
            raise ValueError(
                "more than 1 needs ELASTICSEARCH_URL, as one process alone writes the embedded"
                " keyword index"
            )
        return replicas

    def health_port_of(self, place: int) -> int | None:
        """Where the service at this place in the start order tells of itself; None: nowhere.

        One setting for all: the first service's port; the others' follow it.
        """
        return None if self.health_port is None else self.health_port + place

    @property
    def embeds_broker(self) -> bool:
        return "kafka_bootstrap" not in self.model_fields_set

    @property
    def embeds_milvus(self) -> bool:
        return "milvus_uri" not in self.model_fields_set

    @property
    def api_key_file(self) -> Path:
        return self.home / "api-key"

    @property
    def gateway_url(self) -> str:
        return f"http://127.0.0.1:{self.gateway_port}"

    def child_environment(self) -> dict[str, str]:
        """What every child gets on top of the supervisor's own environment."""
        environment = {
            "SLUICE_HOME": str(self.home.absolute()),
            "SLUICE_LOCAL": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "GRPC_ENABLE_FORK_SUPPORT": "0",
        }
        if self.embeds_broker:
            environment["KAFKA_BOOTSTRAP"] = f"127.0.0.1:{self.broker_port}"
        if self.embeds_milvus:
            environment["MILVUS_URI"] = f"http://127.0.0.1:{self.milvus_port}"
        return environment
