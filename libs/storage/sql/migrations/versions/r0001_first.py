"""Every table of the first numbered schema, as it was then.

Databases from before there were numbers have some or all of them: what is missing is added.
"""

from alembic import op
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
)
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

revision = "0001"
down_revision = None

metadata = MetaData()

Id = String(64)
Key = String(191)
# MySQL's TEXT and BLOB end at 64 KB.
LongText = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
LongBytes = LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True),
    Column("key_sha256", String(64), nullable=False, unique=True),
    Column("tenant", Id, nullable=False),
    Column("role", String(16), nullable=False),
    Column("name", Key, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)

documents = Table(
    "documents",
    metadata,
    Column("id", Id, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("name", String(512), nullable=False),
    Column("media_type", Key, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    # `tenant:sha256` while the document lives, NULL once deleted: same content, same document.
    Column("content_key", Key, unique=True),
    Column("object_key", String(512), nullable=False),
    Column("domain", Key, nullable=False, default=""),
    Column("tags", JSON, nullable=False),
    Column("priority", String(16), nullable=False),
    Column("plan", JSON),  # the requested or recommended chunk plan
    Column("state", String(16), nullable=False),
    Column("stage", String(16)),  # where a failed generation failed
    Column("reason", String(64)),
    Column("detail", LongText),
    Column("generation", Integer, nullable=False),  # the newest
    Column("active_generation", Integer),  # the one that search shows; NULL: none yet
    Column("counts", JSON, nullable=False),  # of the newest
    Column("active_counts", JSON),  # of the one that search shows
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_documents_tenant_created", "tenant", "created_at"),
    Index("ix_documents_state_updated", "state", "updated_at"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("tenant", Id, primary_key=True),
    Column("scope", Id, primary_key=True),  # documents, conversations, or a conversation's id
    Column("key", Key, primary_key=True),
    Column("entity_id", Id, nullable=False),  # what the request made
    Column("created_at", BigInteger, nullable=False),
)

document_timeline = Table(
    "document_timeline",
    metadata,
    Column("document_id", Id, primary_key=True),
    Column("seq", Integer, primary_key=True),  # 1, 2, … per document: the SSE id
    Column("generation", Integer, nullable=False),
    Column("stage", String(16), nullable=False),
    Column("data", JSON, nullable=False),
    Column("at", BigInteger, nullable=False),
)

chunks = Table(
    "chunks",
    metadata,
    Column("id", Key, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("document_id", Id, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("parent_id", Key),  # NULL for parents
    Column("text", LongText, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("page", Integer),
    Column("heading_path", JSON, nullable=False),
    Column("lead", LongText, nullable=False),
    Index("ix_chunks_document", "document_id", "generation", "ordinal"),
)

# What rules and models found in the chunks of a document's active generation. Rows are written and
# dropped in the transactions that move `enrichments`, so they never outlive their generation.
enrichments = Table(
    "enrichments",
    metadata,
    Column("document_id", Id, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("state", String(16), nullable=False),  # due done failed
    Column("next_ordinal", Integer, nullable=False),  # children before it are done
    Column("rules", Integer, nullable=False),  # version of the rules
    Column("model_calls", Integer, nullable=False),  # used of the document's budget
    Column("detail", LongText),  # why it failed
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_enrichments_state", "state", "document_id"),
)

graph_entities = Table(
    "graph_entities",
    metadata,
    Column("chunk_id", Key, primary_key=True),
    Column("name", Key, primary_key=True),  # `kind:key`, the same for every spelling
    Column("tenant", Id, nullable=False),
    Column("document_id", Id, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("start", Integer, nullable=False),  # of its first mention
    Column("end", Integer, nullable=False),
    Column("source", String(8), nullable=False),  # rules or model
    Index("ix_graph_entities_name", "tenant", "name", "chunk_id"),
    Index("ix_graph_entities_document", "document_id", "generation"),
)

graph_relations = Table(
    "graph_relations",
    metadata,
    Column("chunk_id", Key, primary_key=True),  # the chunk that proves it
    Column("seq", Integer, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("document_id", Id, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("verb", String(16), nullable=False),
    Column("subjects", JSON, nullable=False),
    Column("objects", JSON, nullable=False),
    Column("conditions", JSON, nullable=False),  # amounts, periods and dates, see `graph`
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("source", String(8), nullable=False),
    Index("ix_graph_relations_document", "document_id", "generation"),
)

# The ends of the relations: what a traversal goes along.
graph_ends = Table(
    "graph_ends",
    metadata,
    Column("chunk_id", Key, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("name", Key, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("document_id", Id, nullable=False),
    Column("generation", Integer, nullable=False),
    Index("ix_graph_ends_name", "tenant", "name", "chunk_id", "seq"),
    Index("ix_graph_ends_document", "document_id", "generation"),
)

active_index = Table(
    "active_index",
    metadata,
    Column("id", Integer, primary_key=True),  # one row, id 1
    Column("embedding_model", Key, nullable=False),
    Column("vector_collection", Key, nullable=False),
    Column("keyword_index", Key, nullable=False),
    Column("analyser", Integer, nullable=False),  # version of the analysis that made its terms
)

# What the shown generation of a document is like; see `libs.documents.likeness`.
document_likeness = Table(
    "document_likeness",
    metadata,
    Column("document_id", Id, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("text_sha256", String(64), nullable=False),
    Column("sketch", LongBytes, nullable=False),
    Index("ix_document_likeness_text", "tenant", "text_sha256"),
)

document_likeness_keys = Table(
    "document_likeness_keys",
    metadata,
    Column("document_id", Id, primary_key=True),
    Column("key", String(16), primary_key=True),
    Column("tenant", Id, nullable=False),
    Index("ix_document_likeness_keys", "tenant", "key"),
)

# Every set of indexes ever begun beside a live one: so what may still lie about is known.
index_builds = Table(
    "index_builds",
    metadata,
    Column("id", Id, primary_key=True),
    # 1 until it is over and its leftovers are gone, then NULL: one at a time.
    Column("slot", Integer, unique=True),
    Column("state", String(16), nullable=False),  # see `index_builds.State`
    Column("rechunk", Boolean, nullable=False),
    Column("embedding_model", Key),  # this and the next three: NULL until the indexer takes it up
    Column("vector_collection", Key),
    Column("keyword_index", Key),
    Column("analyser", Integer),  # version of the analysis that made its terms
    Column("old_vector_collection", Key),  # this and the next: what it replaced
    Column("old_keyword_index", Key),
    Column("problem", LongText),  # what holds it up now
    Column("created_at", BigInteger, nullable=False),
    Column("switched_at", BigInteger),
    Column("ended_at", BigInteger),
)

# Which generation of a document is whole in the set under construction.
index_build_documents = Table(
    "index_build_documents",
    metadata,
    Column("build_id", Id, primary_key=True),
    Column("document_id", Id, primary_key=True),
    Column("generation", Integer, nullable=False),  # 0: none, it was asked to be cut anew
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Id, primary_key=True),
    Column("topic", Key, nullable=False),
    Column("partition", Integer),  # wanted before sending, where it went afterwards
    Column("key", Key, nullable=False),
    Column("value", LongBytes, nullable=False),  # framed Avro
    Column("headers", JSON, nullable=False),
    Column("not_before", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    Column("broker_epoch", Id),
    Column("offset", BigInteger),
    Index("ix_outbox_pending", "sent_at", "not_before"),
    Index("ix_outbox_key", "key"),
    Index("ix_outbox_place", "topic", "partition", "offset"),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", Id, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("topic", Key, nullable=False),
    Column("group_id", Key, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("key", Key, nullable=False),
    Column("value", LongBytes, nullable=False),
    Column("headers", JSON, nullable=False),
    Column("reason", String(64), nullable=False),
    Column("detail", LongText, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("redriven_at", BigInteger),
    Index("ix_dead_letters_tenant", "tenant", "created_at"),
    Index("ix_dead_letters_redriven", "redriven_at"),
)

broker_epoch = Table(
    "broker_epoch",
    metadata,
    Column("id", Integer, primary_key=True),  # one row, id 1
    Column("epoch", Id, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
)

upload_horizon = Table(
    "upload_horizon",
    metadata,
    Column("id", Integer, primary_key=True),  # one row, id 1
    Column("before", BigInteger, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Key, primary_key=True),  # e.g. `document:<id>:<generation>`, `turn:<id>`
    Column("holder", Id, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("agent", Id, nullable=False),
    Column("memory", String(16), nullable=False),  # none, window, summary
    Column("pending_question", LongText),  # what CLARIFY asked about; the next turn completes it
    Column("next_turn_seq", Integer, nullable=False, default=1),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_conversations_tenant", "tenant", "created_at"),
)

turns = Table(
    "turns",
    metadata,
    Column("id", Id, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("conversation_id", Id, nullable=False),
    Column("seq", Integer, nullable=False),  # 1, 2, … in its conversation
    Column("text", LongText, nullable=False),
    Column("state", String(16), nullable=False),  # requested planned done failed cancelled
    Column("reply_partition", Integer, nullable=False),
    Column("plan", JSON),
    Column("answer", LongText),
    Column("declined", Boolean, nullable=False, default=False),
    Column("extractive", Boolean, nullable=False, default=False),  # no model wrote the answer
    Column("citations", JSON, nullable=False),
    Column("suggestions", JSON, nullable=False),
    Column("usage", JSON, nullable=False),
    Column("error", JSON),
    Column("checkpoint", JSON),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    UniqueConstraint("conversation_id", "seq", name="uq_turns_conversation_seq"),
    Index("ix_turns_state_updated", "state", "updated_at"),
)

turn_events = Table(
    "turn_events",
    metadata,
    Column("turn_id", Id, primary_key=True),
    Column("seq", Integer, primary_key=True),  # 1, 2, …: the SSE id
    Column("type", String(16), nullable=False),
    Column("data", JSON, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_turn_events_type", "type", "at"),
)

memories = Table(
    "memories",
    metadata,
    Column("conversation_id", Id, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("folded_turn_seq", Integer, nullable=False),  # turns up to here are in the memory
    Column("window", JSON, nullable=False),  # [{"seq", "question", "answer"}], oldest first
    Column("summary", LongText, nullable=False),
    Column("slots", JSON, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

model_calls = Table(
    "model_calls",
    metadata,
    Column("id", Id, primary_key=True),
    Column("tenant", Id, nullable=False),
    Column("turn_id", Id),
    Column("model", Key, nullable=False),
    Column("purpose", String(32), nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("outcome", String(32), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_model_calls_created", "created_at"),
)

workers = Table(
    "workers",
    metadata,
    Column("id", Id, primary_key=True),  # one process
    Column("service", Id, nullable=False),
    Column("host", Key, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("ready", Boolean, nullable=False),
    Column("missing", JSON, nullable=False),  # what it waits for, by name
    Column("started_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),  # heartbeat; older than 10 s means gone
    Index("ix_workers_service", "service", "seen_at"),
)


def upgrade() -> None:
    connection = op.get_bind()
    there = inspect(connection)
    for table in metadata.sorted_tables:
        if not there.has_table(table.name):
            continue
        known = {column["name"] for column in there.get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                op.add_column(table.name, Column(column.name, column.type))
        indexes = {index["name"] for index in there.get_indexes(table.name)}
        for index in table.indexes:
            if index.name not in indexes:
                index.create(connection)
    metadata.create_all(connection)
