"""Where the broker is and how patient its groups are."""

from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """A Kafka-compatible broker."""

    bootstrap: str
    # The embedded broker waits half of this for other members before a group starts.
    session_timeout_s: float = 6.0
    # How long a broker may hold a fetch that finds nothing. The embedded one holds a fetch of many
    # partitions for all of it, though a record comes meanwhile, so this is what a hop costs there.
    fetch_wait_s: float = 0.5
    # A partition that is held back keeps being polled, so only a dead process ever exceeds this.
    max_poll_interval_s: float = 300.0

    @property
    def revoke_timeout_s(self) -> float:
        """How long a revoked partition's running work may delay a rebalance."""
        return self.session_timeout_s / 3


def group_client(kafka: KafkaConnection, group_id: str) -> AIOKafkaConsumer:
    """A client that joins a group and commits only what it is told to."""
    session_ms = int(kafka.session_timeout_s * 1000)
    return AIOKafkaConsumer(
        bootstrap_servers=kafka.bootstrap,
        group_id=group_id,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=int(kafka.fetch_wait_s * 1000),
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=session_ms // 6,
        rebalance_timeout_ms=2 * session_ms,
        max_poll_interval_ms=int(kafka.max_poll_interval_s * 1000),
    )


def reader_client(kafka: KafkaConnection) -> AIOKafkaConsumer:
    """A client without a group, for readers that are assigned their partitions."""
    options: dict[str, Any] = {
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": int(kafka.fetch_wait_s * 1000),
    }
    return AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap, group_id=None, **options)
