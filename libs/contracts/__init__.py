"""Events, the execution plan, topics and the Avro codec."""

from libs.contracts.codec import decode, encode, to_record
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
from libs.contracts.record import OutgoingRecord

__all__ = [
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
    "TurnCompleted",
    "TurnControl",
    "TurnPlanned",
    "TurnReply",
    "TurnRequested",
    "decode",
    "encode",
    "to_record",
]
