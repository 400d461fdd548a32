"""What is seen of each message: its log context, its trace and the metrics of its try."""

from prometheus_client import Counter, Histogram

from libs.eventbus.message import EVENT_ID, TRACEPARENT, Record
from libs.observability import MessageContext, message_context, metrics, tracing


class TopicMetrics:
    """One topic's metrics; looked up once, because finding a label costs more than counting."""

    __slots__ = ("_group", "_outcomes", "_topic", "handler_seconds")

    def __init__(self, group: str, topic: str) -> None:
        self._group, self._topic = group, topic
        self._outcomes: dict[str, Counter] = {}
        self.handler_seconds: Histogram = metrics.EVENTBUS_HANDLER_SECONDS.labels(group, topic)

    def count(self, outcome: str) -> None:
        counter = self._outcomes.get(outcome)
        if counter is None:
            labels = (self._group, self._topic, outcome)
            counter = self._outcomes[outcome] = metrics.EVENTBUS_MESSAGES.labels(*labels)
        counter.inc()

    def count_retry(self, reason: str) -> None:
        metrics.EVENTBUS_RETRIES.labels(self._group, self._topic, reason).inc()

    def count_dead_letter(self, reason: str) -> None:
        metrics.EVENTBUS_DEAD_LETTERS.labels(self._group, self._topic, reason).inc()


class Observer:
    """Shows the messages of one group to logs, traces and metrics."""

    __slots__ = ("_group", "_topics")

    def __init__(self, group_id: str) -> None:
        self._group = group_id
        self._topics: dict[str, TopicMetrics] = {}

    def topic(self, name: str) -> TopicMetrics:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = TopicMetrics(self._group, name)
        return topic

    def enter(self, record: Record) -> tracing.TraceContext | None:
        """Make the message the current one for logs and traces; returns its trace to record."""
        event_id, trace = "", None
        for name, value in record.headers:
            if name == TRACEPARENT:
                trace = tracing.parse(value.decode(errors="replace"))
            elif name == EVENT_ID:
                event_id = value.decode(errors="replace")
        message_context.set(
            MessageContext(self._group, record.topic, record.partition, record.offset, event_id)
        )
        tracing.enter(trace)
        return trace if trace is not None and trace.sampled else None
