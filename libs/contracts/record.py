"""An event as it goes onto a topic, and where it went."""

from dataclasses import dataclass, field

from libs.contracts.codec import encode
from libs.contracts.events import Event
from libs.contracts.store import schema_store
from libs.contracts.topics import topic_of
from libs.kernel import isoformat, new_id, now_us
from libs.observability import tracing
from libs.observability.service import service_name

SCHEMA = "ce_dataschema"  # what it was written with: `<topic>/<version>`
TENANT = "ce_tenant"  # whose event it is, for those who cannot decode it


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """A framed, keyed record; `partition` only where the sender owns the choice."""

    topic: str
    key: str
    value: bytes
    headers: dict[str, str] = field(default_factory=dict)
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Where the broker stored a record."""

    topic: str
    partition: int
    offset: int


def to_record(event: Event, *, lane: str = "", partition: int | None = None) -> OutgoingRecord:
    """The event with its topic (or lane), key and headers.

    The headers are CloudEvents' (`ce_id` is new with every call) and W3C's `traceparent`: the
    current trace, or a new one where there is none.
    """
    topic = topic_of(type(event).__name__)
    headers = {
        "ce_specversion": "1.0",
        "ce_id": new_id(),
        "ce_type": topic.name,
        "ce_source": service_name(),
        SCHEMA: schema_store().newest(topic.name).name,
        "ce_time": isoformat(now_us()),
        TENANT: event.tenant,
        "traceparent": tracing.to_header(tracing.current() or tracing.new()),
    }
    key = str(getattr(event, topic.key))
    return OutgoingRecord(topic.lane(lane), key, encode(event), headers, partition)
