"""Typed events, generated from schemas/avro by `python -m libs.contracts.generate`."""

from dataclasses import dataclass

from libs.contracts.plan import ConversationExecutionPlan


@dataclass(frozen=True, slots=True)
class DocumentUploaded:
    """A document (or a new generation of it) is stored and waits to be parsed."""

    tenant: str
    document_id: str
    generation: int
    name: str
    media_type: str
    object_key: str
    size_bytes: int
    priority: str = "normal"


@dataclass(frozen=True, slots=True)
class DocumentParsed:
    """The document model and its plain text are in the object store."""

    tenant: str
    document_id: str
    generation: int
    document_key: str
    text_key: str
    char_count: int
    priority: str = "normal"


@dataclass(frozen=True, slots=True)
class DocumentChunked:
    """The chunk set of a generation is in SQL."""

    tenant: str
    document_id: str
    generation: int
    parent_count: int
    child_count: int
    priority: str = "normal"


@dataclass(frozen=True, slots=True)
class DocumentIndexed:
    """A generation became searchable."""

    tenant: str
    document_id: str
    generation: int
    chunk_count: int


@dataclass(frozen=True, slots=True)
class DocumentFailed:
    """A generation ended at a stage with a reason code a person understands."""

    tenant: str
    document_id: str
    generation: int
    stage: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DocumentDeleted:
    """A tombstone was set; every store drops what it holds of the document."""

    tenant: str
    document_id: str


@dataclass(frozen=True, slots=True)
class DocumentControl:
    """Broadcast: stop working on a document. SQL is the truth, this makes it quick."""

    tenant: str
    document_id: str
    action: str


@dataclass(frozen=True, slots=True)
class TurnRequested:
    """A user's turn is stored and waits for a plan."""

    tenant: str
    conversation_id: str
    turn_id: str
    reply_partition: int


@dataclass(frozen=True, slots=True)
class TurnPlanned:
    """The orchestrator decided how the turn is answered."""

    tenant: str
    conversation_id: str
    turn_id: str
    reply_partition: int
    plan: ConversationExecutionPlan


@dataclass(frozen=True, slots=True)
class TurnReply:
    """One stored event of a turn, fanned out to the gateways. `data` is a JSON object."""

    tenant: str
    turn_id: str
    seq: int
    type: str
    data: str


@dataclass(frozen=True, slots=True)
class TurnControl:
    """Broadcast: stop a turn. SQL is the truth, this makes it quick."""

    tenant: str
    turn_id: str
    action: str


@dataclass(frozen=True, slots=True)
class TurnCompleted:
    """A turn reached its terminal event."""

    tenant: str
    conversation_id: str
    turn_id: str
    state: str


@dataclass(frozen=True, slots=True)
class MemoryCompacted:
    """A conversation's memory covers its turns up to `folded_turn_seq`."""

    tenant: str
    conversation_id: str
    folded_turn_seq: int


Event = (
    DocumentUploaded
    | DocumentParsed
    | DocumentChunked
    | DocumentIndexed
    | DocumentFailed
    | DocumentDeleted
    | DocumentControl
    | TurnRequested
    | TurnPlanned
    | TurnReply
    | TurnControl
    | TurnCompleted
    | MemoryCompacted
)
