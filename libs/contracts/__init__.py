"""Events, the execution plan, topics and the Avro codec."""

from libs.contracts.codec import decode, encode, read
from libs.contracts.events import (
    DocumentChunked,
    DocumentControl,
    DocumentDeleted,
    DocumentFailed,
    DocumentIndexed,
    DocumentParsed,
    DocumentUploaded,
    Event,
    MemoryCompacted,
    TurnCompleted,
    TurnControl,
    TurnPlanned,
    TurnReply,
    TurnRequested,
)
from libs.contracts.plan import ConversationExecutionPlan, ExecutionMode
from libs.contracts.record import OutgoingRecord, Position, to_record
from libs.contracts.topics import load_topics, topic_of
from libs.contracts.topology import (
    EPOCH_TOPIC,
    TopicSpec,
    dead_letter_topic,
    groups_of,
    retry_topic,
    topic_specs,
)

__all__ = [
    "EPOCH_TOPIC",
    "ConversationExecutionPlan",
    "DocumentChunked",
    "DocumentControl",
    "DocumentDeleted",
    "DocumentFailed",
    "DocumentIndexed",
    "DocumentParsed",
    "DocumentUploaded",
    "Event",
    "ExecutionMode",
    "MemoryCompacted",
    "OutgoingRecord",
    "Position",
    "TopicSpec",
    "TurnCompleted",
    "TurnControl",
    "TurnPlanned",
    "TurnReply",
    "TurnRequested",
    "dead_letter_topic",
    "decode",
    "encode",
    "groups_of",
    "load_topics",
    "read",
    "retry_topic",
    "to_record",
    "topic_of",
    "topic_specs",
]
