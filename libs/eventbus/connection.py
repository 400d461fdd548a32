"""Where the broker is, how it lets clients in, and how patient its groups are."""

from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from libs.eventbus.security import PLAINTEXT, KafkaSecurity


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """A Kafka-compatible broker. Every client of it is made here, so none lacks a setting."""

    bootstrap: str  # host:port, several by commas
    # The embedded broker waits half of this for other members before a group starts.
    session_timeout_s: float = 6.0
    # How long a broker may hold a fetch that finds nothing. The embedded one holds a fetch of many
    # partitions for all of it, though a record comes meanwhile, so this is what a hop costs there.
    fetch_wait_s: float = 0.5
    # A partition that is held back keeps being polled, so only a dead process ever exceeds this.
    max_poll_interval_s: float = 300.0
    security: KafkaSecurity = PLAINTEXT
    idempotence: bool = False  # needs producer ids, which the embedded broker does not have
    rack: str | None = None  # where this process is: it reads from a replica that is there, too

    @property
    def revoke_timeout_s(self) -> float:
        """How long a revoked partition's running work may delay a rebalance."""
        return self.session_timeout_s / 3

    def consumer(self, **options: Any) -> AIOKafkaConsumer:
        """A client that commits only what it is told to."""
        settings = {**self._reaching, "enable_auto_commit": False, "client_rack": self.rack}
        return AIOKafkaConsumer(**settings, **options)

    def producer(self, **options: Any) -> AIOKafkaProducer:
        """A client whose records are sent when every in-sync replica has them."""
        settings = {**self._reaching, "acks": "all", "enable_idempotence": self.idempotence}
        return AIOKafkaProducer(**settings, **options)

    def admin(self, **options: Any) -> AIOKafkaAdminClient:
        return AIOKafkaAdminClient(**self._reaching, **options)

    @property
    def _reaching(self) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap, **self.security.client_options()}


def group_client(kafka: KafkaConnection, group_id: str) -> AIOKafkaConsumer:
    """A client that joins a group."""
    session_ms = int(kafka.session_timeout_s * 1000)
    return kafka.consumer(
        group_id=group_id,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=int(kafka.fetch_wait_s * 1000),
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=session_ms // 6,
        rebalance_timeout_ms=2 * session_ms,
        max_poll_interval_ms=int(kafka.max_poll_interval_s * 1000),
    )


def reader_client(kafka: KafkaConnection) -> AIOKafkaConsumer:
    """A client without a group, for readers that are assigned their partitions."""
    return kafka.consumer(
        group_id=None,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=int(kafka.fetch_wait_s * 1000),
    )
