"""Every metric of the platform, each with its meaning. Base units: seconds, bytes, counts.

Runtimes keep the children that `labels()` returns: looking one up costs more than counting.
"""

from prometheus_client import Counter, Gauge, Histogram

from libs.observability.light import LightCounter, LightHistogram

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1800.0)

# Messages whose work ended. outcome: handled | retried | failed | dead-lettered | dropped.
EVENTBUS_MESSAGES = LightCounter(
    "eventbus_messages_total", "Messages whose work ended", ["group", "topic", "outcome"]
)
# Time in the handler, of one try, whatever its outcome.
EVENTBUS_HANDLER_SECONDS = LightHistogram(
    "eventbus_handler_seconds", "Time in the handler, per try", ["group", "topic"], buckets=_LONG
)
# Handlers that are running or suspended now.
EVENTBUS_IN_FLIGHT = Gauge("eventbus_in_flight", "Handlers at work now", ["group"])
# Messages in the log behind what the group committed.
EVENTBUS_LAG = Gauge("eventbus_lag", "Messages not yet committed", ["group", "topic", "partition"])
# Partitions that are paused because their buffer is full.
EVENTBUS_PAUSED = Gauge("eventbus_paused_partitions", "Partitions paused for load", ["group"])
# Tries that will be repeated. reason: transient | bug.
EVENTBUS_RETRIES = Counter(
    "eventbus_retries_total", "Tries that will be repeated", ["group", "topic", "reason"]
)
# Messages given up: recorded in SQL and on the dead-letter topic.
EVENTBUS_DEAD_LETTERS = Counter(
    "eventbus_dead_letters_total", "Messages given up", ["group", "topic", "reason"]
)
# Offset commits. outcome: done | failed.
EVENTBUS_COMMITS = Counter("eventbus_commits_total", "Offset commits", ["group", "outcome"])
# Times partitions were taken from or given to this process.
EVENTBUS_REBALANCES = Counter("eventbus_rebalances_total", "Rebalances seen", ["group"])

# Committed outbox rows that are not relayed yet, of all processes.
OUTBOX_PENDING = Gauge("outbox_pending", "Outbox rows waiting to be relayed")
# Age of the oldest of them that is due.
OUTBOX_OLDEST_SECONDS = Gauge("outbox_oldest_seconds", "Age of the oldest due outbox row")
# Rows relayed. via: commit (at once) | sweep (found later).
OUTBOX_RELAYED = Counter("outbox_relayed_total", "Outbox rows relayed", ["via"])
# Relays that failed; the sweep takes them up again.
OUTBOX_RELAY_FAILURES = Counter("outbox_relay_failures_total", "Relays that failed")
# Records published, past the outbox ones too.
EVENTBUS_PUBLISHED = Counter("eventbus_published_total", "Records the broker took", ["topic"])
# Work that the reconciler emitted again. kind: document | turn | deletion.
RECONCILED = Counter("reconciler_emitted_total", "Unfinished work emitted again", ["kind"])
# Times the broker was found to have lost its log.
BROKER_EPOCHS = Counter("broker_epoch_changes_total", "Times the broker's log was new")

# Documents that reached a state. state: uploaded | parsed | chunked | indexed | failed | ...
DOCUMENTS = Counter("documents_total", "Documents that reached a state", ["state"])
# Documents that failed, by the step and the reason code people see.
DOCUMENT_FAILURES = Counter("document_failures_total", "Documents that failed", ["stage", "reason"])
# Upload to searchable.
DOCUMENT_SECONDS = Histogram("document_seconds", "Upload to searchable", buckets=_LONG)
# Bytes of original files taken in.
UPLOADED_BYTES = Counter("uploaded_bytes_total", "Bytes of files taken in")
# Work of one stage on one document. stage: parse | chunk | embed | index.
STAGE_SECONDS = Histogram(
    "stage_seconds", "Work of a stage on a document", ["stage"], buckets=_LONG
)
# Passages embedded.
EMBEDDED_PASSAGES = Counter("embedded_passages_total", "Passages embedded")

# Request to terminal event of a turn. state: done | failed | cancelled.
TURN_SECONDS = Histogram("turn_seconds", "Request to terminal event", ["state"], buckets=_LONG)
# Request to the first word of the answer.
TURN_FIRST_DELTA_SECONDS = Histogram(
    "turn_first_delta_seconds", "Request to the first word", buckets=_QUICK
)
# Events of turns that were stored, by type: delta | evidence | done | ...
TURN_EVENTS = Counter("turn_events_total", "Events of turns stored", ["type"])
# Plans made. mode: CLARIFY | RAG_CHAT | REACT_AGENT; by: rules | model | fallback.
PLANS = Counter("plans_total", "Plans made", ["mode", "by"])
# Streams open now.
OPEN_STREAMS = Gauge("open_streams", "Server-sent event streams open now", ["kind"])
# Events that a stream read from SQL because the fan-out did not bring them.
STREAM_GAPS = Counter("stream_gap_events_total", "Events a stream filled in from SQL")

# One step of a search. channel: vector | keyword | graph | hydration | embed_query | rerank |
# explain.
RETRIEVAL_SECONDS = Histogram(
    "retrieval_seconds", "One channel's search", ["channel"], buckets=_QUICK
)
# Searches. outcome: evidence | declined | failed.
RETRIEVALS = Counter("retrievals_total", "Searches", ["outcome"])
# Hits that hydration refused: stale generation, deleted or another tenant's.
HITS_DROPPED = Counter("retrieval_hits_dropped_total", "Hits that are not to be shown")
# Hits put in a rerank model's order. outcome: done | failed (the fused order stood).
RERANKS = Counter("reranks_total", "Searches that a rerank model was asked about", ["outcome"])
# Calls to models. outcome: done | rate-limited | timeout | refused | malformed | failed.
MODEL_CALLS = Counter("model_calls_total", "Calls to models", ["model", "outcome"])
# Duration of calls to models, streams to their end.
MODEL_SECONDS = Histogram("model_seconds", "Calls to models", ["model"], buckets=_LONG)
# Tokens. direction: in | out.
MODEL_TOKENS = Counter("model_tokens_total", "Tokens to and from models", ["model", "direction"])
# Citations of evidence that was not given: removed from the answer.
CITATIONS_DROPPED = Counter("citations_dropped_total", "Citations of unknown evidence removed")
# Answers put together from the evidence because no model could.
EXTRACTIVE_ANSWERS = Counter("extractive_answers_total", "Answers without a model")

# Coroutines that are running or suspended in this process: more and more of them are a leak, as
# are file descriptors, which `process_open_fds` counts.
EVENT_LOOP_TASKS = Gauge("event_loop_tasks", "Tasks of the event loop that have not ended")

# Messages of a topic that a group has not finished, of all its members. Alarm on `group_stalled`.
GROUP_WAITING = Gauge("group_waiting", "Messages a group has not finished", ["group", "topic"])
# 1 while messages wait and no process of the service can take them.
GROUP_STALLED = Gauge("group_stalled", "Messages wait and nobody works", ["group", "topic"])
# Processes whose heartbeat is live and that say they are ready.
WORKERS_READY = Gauge("workers_ready", "Live processes that are ready", ["service"])
# Requests. route is the template, never the path.
HTTP_REQUESTS = Counter("http_requests_total", "Requests", ["route", "method", "status"])
# Time to the response's start.
HTTP_SECONDS = Histogram("http_request_seconds", "Time to the response", ["route"], buckets=_QUICK)
# Requests refused by a limit or guard. reason: rate | size | type | key | forbidden | slow.
HTTP_REFUSED = Counter("http_refused_total", "Requests refused by a guard", ["reason"])
