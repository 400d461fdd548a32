"""Settings that every process shares, read from the environment once, at the start.

Each embedded part gives way to a real server when its setting is present.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from libs.eventbus import KafkaConnection
from libs.eventbus.security import KafkaSecurity, Mechanism, Protocol
from libs.observability import redacted
from libs.storage.sql.retention import DAY_S, HOUR_S, Retention


class PlatformSettings(BaseSettings):
    """Where the platform's parts are. Services subclass it to add what only they need."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    home: Path = Field(default=Path(".sluice"), validation_alias="SLUICE_HOME")
    host: str = Field(default="127.0.0.1", validation_alias="SLUICE_HOST")
    # Host names that HTTP services answer to besides loopback, comma-separated; `*`: any.
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), validation_alias="SLUICE_ALLOWED_HOSTS"
    )
    gateway_port: int = Field(default=8080, validation_alias="SLUICE_PORT")
    ingest_port: int = Field(default=8081, validation_alias="SLUICE_INGEST_PORT")
    # `/live`, `/ready` and `/metrics` of the process by itself: none unless set.
    health_port: int | None = Field(default=None, validation_alias="SLUICE_HEALTH_PORT")
    kafka_bootstrap: str = Field(default="127.0.0.1:19092", validation_alias="KAFKA_BOOTSTRAP")
    # The embedded broker joins groups after half of this, so local mode keeps it short.
    kafka_session_timeout_s: float = Field(default=6.0, validation_alias="KAFKA_SESSION_TIMEOUT_S")
    # What a hop may cost on the embedded broker; services that somebody waits for make it short.
    kafka_fetch_wait_s: float = Field(default=0.5, gt=0, validation_alias="KAFKA_FETCH_WAIT_S")
    kafka_idempotence: bool = Field(default=False, validation_alias="KAFKA_IDEMPOTENCE")
    kafka_security_protocol: Protocol = Field(
        default="PLAINTEXT", validation_alias="KAFKA_SECURITY_PROTOCOL"
    )
    kafka_sasl_mechanism: Mechanism = Field(
        default="PLAIN", validation_alias="KAFKA_SASL_MECHANISM"
    )
    kafka_sasl_username: str | None = Field(default=None, validation_alias="KAFKA_SASL_USERNAME")
    kafka_sasl_password: str | None = Field(
        default=None, validation_alias="KAFKA_SASL_PASSWORD", repr=False
    )
    kafka_ssl_cafile: Path | None = Field(default=None, validation_alias="KAFKA_SSL_CAFILE")
    kafka_client_rack: str | None = Field(default=None, validation_alias="KAFKA_CLIENT_RACK")
    schema_registry_url: str | None = Field(default=None, validation_alias="SCHEMA_REGISTRY_URL")
    database_url: str | None = Field(default=None, validation_alias="DATABASE_URL")
    # A bucket of MinIO or another S3 server; files in the data folder unless an endpoint is set.
    s3_endpoint: str | None = Field(default=None, validation_alias="S3_ENDPOINT")
    s3_bucket: str = Field(default="sluice", validation_alias="S3_BUCKET")
    s3_access_key: str | None = Field(default=None, validation_alias="S3_ACCESS_KEY", repr=False)
    s3_secret_key: str | None = Field(default=None, validation_alias="S3_SECRET_KEY", repr=False)
    # Where clients reach the same server: originals are then downloaded there, by links.
    s3_public_endpoint: str = Field(default="", validation_alias="S3_PUBLIC_ENDPOINT")
    milvus_uri: str = Field(default="http://127.0.0.1:19530", validation_alias="MILVUS_URI")
    milvus_token: str = Field(default="", validation_alias="MILVUS_TOKEN", repr=False)
    elasticsearch_url: str | None = Field(default=None, validation_alias="ELASTICSEARCH_URL")
    llm_base_url: str | None = Field(default=None, validation_alias="LLM_BASE_URL")
    llm_model: str | None = Field(default=None, validation_alias="LLM_MODEL")
    llm_api_key: str | None = Field(default=None, validation_alias="LLM_API_KEY", repr=False)
    # Embeddings of an OpenAI-compatible server; the bundled model unless an address is set.
    embed_base_url: str | None = Field(default=None, validation_alias="EMBED_BASE_URL")
    embed_model: str | None = Field(default=None, validation_alias="EMBED_MODEL")
    embed_api_key: str | None = Field(default=None, validation_alias="EMBED_API_KEY", repr=False)
    embed_query_prefix: str = Field(default="", validation_alias="EMBED_QUERY_PREFIX")
    embed_passage_prefix: str = Field(default="", validation_alias="EMBED_PASSAGE_PREFIX")
    # The cosines that count as a similarity of 0, 0.45 and 1, by commas; none: measured.
    embed_cosines: Annotated[tuple[float, ...], NoDecode] = Field(
        default=(), validation_alias="EMBED_COSINES"
    )
    # What puts the best hits of a search in order: a `/rerank` API or a model in a folder.
    rerank_base_url: str | None = Field(default=None, validation_alias="RERANK_BASE_URL")
    rerank_model: str | None = Field(default=None, validation_alias="RERANK_MODEL")
    rerank_api_key: str | None = Field(default=None, validation_alias="RERANK_API_KEY", repr=False)
    rerank_model_dir: Path | None = Field(default=None, validation_alias="RERANK_MODEL_DIR")
    # How long finished rows are kept (see Retention).
    keep_sent_events_hours: float = Field(
        default=24, ge=1, validation_alias="SLUICE_KEEP_SENT_EVENTS_HOURS"
    )
    keep_turn_events_days: float = Field(
        default=30, gt=0, validation_alias="SLUICE_KEEP_TURN_EVENTS_DAYS"
    )
    keep_model_calls_days: float = Field(
        default=400, gt=0, validation_alias="SLUICE_KEEP_MODEL_CALLS_DAYS"
    )
    keep_dead_letters_days: float = Field(
        default=30, gt=0, validation_alias="SLUICE_KEEP_DEAD_LETTERS_DAYS"
    )
    keep_idempotency_keys_days: float = Field(
        default=7, gt=0, validation_alias="SLUICE_KEEP_IDEMPOTENCY_KEYS_DAYS"
    )
    # How often rows that are no longer kept are removed, jittered.
    housekeeping_s: float = Field(default=60.0, gt=0, validation_alias="SLUICE_HOUSEKEEPING_S")
    # Spans go to an OTLP receiver; this share of the traces that begin here.
    otlp_endpoint: str | None = Field(default=None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    trace_ratio: float = Field(default=0.1, ge=0, le=1, validation_alias="SLUICE_TRACE_RATIO")
    log_level: str = Field(default="INFO", validation_alias="SLUICE_LOG_LEVEL")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Without passwords in addresses, too."""
        for name, value in super().__repr_args__():
            yield name, redacted(value) if isinstance(value, str) else value

    @property
    def sql_url(self) -> str:
        """The SQLAlchemy URL; a SQLite file in the data folder unless one is configured."""
        return self.database_url or f"sqlite+aiosqlite:///{self.home.absolute() / 'sluice.db'}"

    @property
    def kafka(self) -> KafkaConnection:
        """What every client of the broker is made from.

        Raises: PermanentError (`kafka-settings`) that names the setting.
        """
        return KafkaConnection(
            self.kafka_bootstrap,
            session_timeout_s=self.kafka_session_timeout_s,
            fetch_wait_s=self.kafka_fetch_wait_s,
            security=KafkaSecurity(
                self.kafka_security_protocol,
                self.kafka_sasl_mechanism,
                self.kafka_sasl_username,
                self.kafka_sasl_password,
                self.kafka_ssl_cafile,
            ),
            idempotence=self.kafka_idempotence,
            rack=self.kafka_client_rack or None,
        )

    @property
    def retention(self) -> Retention:
        return Retention(
            sent_events_s=self.keep_sent_events_hours * HOUR_S,
            turn_events_s=self.keep_turn_events_days * DAY_S,
            model_calls_s=self.keep_model_calls_days * DAY_S,
            handled_letters_s=self.keep_dead_letters_days * DAY_S,
            idempotency_keys_s=self.keep_idempotency_keys_days * DAY_S,
        )

    @property
    def objects_dir(self) -> Path:
        return self.home / "objects"

    @property
    def keywords_dir(self) -> Path:
        return self.home / "keywords"

    @field_validator("allowed_hosts", "embed_cosines", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value


class InteractiveSettings(PlatformSettings):
    """Of services that a person waits for: they ask the broker often."""

    kafka_fetch_wait_s: float = Field(
        default=0.05, gt=0, validation_alias="KAFKA_INTERACTIVE_FETCH_WAIT_S"
    )
