"""Events, the execution plan, topics and the Avro codec."""

from libs.contracts.codec import decode, encode
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
<<<<<<< HEAD
from libs.contracts.record import OutgoingRecord, to_record
from libs.contracts.topics import Topic, load_topics, topic_of
from libs.contracts.topology import (
    EPOCH_TOPIC,
    TopicSpec,
    dead_letter_topic,
    groups_of,
    retry_topic,
    topic_specs,
)
=======
from libs.contracts.record import OutgoingRecord, Position
>>>>>>> bf16abb (feat: publisher, relay and sweep of the outbox)

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
<<<<<<< HEAD
    "Topic",
    "TopicSpec",
=======
    "Position",
>>>>>>> bf16abb (feat: publisher, relay and sweep of the outbox)
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
    "retry_topic",
    "to_record",
    "topic_of",
    "topic_specs",
]
