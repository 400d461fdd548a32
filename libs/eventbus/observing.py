"""What is seen of each message: its log context, its trace and the metrics of its tries."""

from libs.eventbus.message import EVENT_ID, TRACEPARENT, Record, header
from libs.observability import message_context, metrics, tracing
from libs.observability.light import LightCount


class CurrentMessage:
    """A message as log lines name it; its event id is looked up when one is written."""

    __slots__ = ("_record", "group")

    def __init__(self, group: str, record: Record) -> None:
        self.group = group
        self._record = record

    @property
    def topic(self) -> str:
        return self._record.topic

    @property
    def partition(self) -> int:
        return self._record.partition

    @property
    def offset(self) -> int:
        return self._record.offset

    @property
    def event_id(self) -> str:
        return header(self._record.headers, EVENT_ID) or ""


class TopicMetrics:
    """One topic's metrics; kept, because finding a label costs more than counting."""

    __slots__ = ("_group", "_topic", "handled", "handler_seconds")

    def __init__(self, group: str, topic: str) -> None:
        self._group, self._topic = group, topic
        self.handler_seconds = metrics.EVENTBUS_HANDLER_SECONDS.labels(group, topic)
        self.handled = self._count("handled")

    def failed(self) -> None:
        self._count("failed").inc()

    def retried(self, reason: str) -> None:
        self._count("retried").inc()
        metrics.EVENTBUS_RETRIES.labels(self._group, self._topic, reason).inc()

    def dead_lettered(self, reason: str) -> None:
        self._count("dead-lettered").inc()
        metrics.EVENTBUS_DEAD_LETTERS.labels(self._group, self._topic, reason).inc()

    def _count(self, outcome: str) -> LightCount:
        return metrics.EVENTBUS_MESSAGES.labels(self._group, self._topic, outcome)


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

    def enter(self, record: Record) -> bool:
        """Make the message the current one for logs and traces; True if it wants a span."""
        message_context.set(CurrentMessage(self._group, record))
        for name, value in record.headers:
            if name == TRACEPARENT:
                return tracing.enter_header(value)
        return tracing.enter_header(None)
