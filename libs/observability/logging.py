"""structlog: JSON lines on stderr, readable ones on a terminal. Secrets never get that far."""

import logging
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TextIO

import orjson
import structlog
from structlog.types import EventDict, Processor, WrappedLogger

from libs.kernel import escape_hidden, printable
from libs.observability import tracing
from libs.observability.service import service_name, set_service_name

REDACTED = "[redacted]"
_SECRET_KEY = re.compile(
    r"(?i)(^|[_-])(api[_-]?key|authorization|cookie|password|passwd|secret|credentials?|token)$"
)
_SECRET_TEXT = re.compile(
    r"(?i)(?P<kept>\b(?:bearer|basic)\s+"
    r"|\b(?:api[_-]?key|passwd|password|secret|token)[\"']?\s*[=:]\s*[\"']?(?!bearer|basic))"
    r"[^\s@&'\",;]+"
)
_SECRET_IN_URL = re.compile(r"(?P<kept>://[^\s/:@]{0,64}:)\S{1,256}(?=@)")
_KEY = re.compile(r"\b(?:slk_|sk-)[\w-]{8,}")  # ours, and those of most model servers
MAX_TEXT_CHARS = 16_000
# What these report as an error, with its traceback, is raised as well and told in one line.
_NOISY = {
    "aiokafka": logging.CRITICAL,
    "faust": logging.WARNING,
    "elastic_transport": logging.WARNING,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "pymilvus": logging.CRITICAL,
}


class MessageView(Protocol):
    """The message a handler works on, as every line it logs names it; asked when one is logged."""

    @property
    def group(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def event_id(self) -> str: ...


message_context: ContextVar[MessageView | None] = ContextVar("message_context", default=None)


def configure_logging(
    service: str, level: str = "INFO", *, stream: TextIO | None = None, json: bool | None = None
) -> None:
    """Send structlog's and the standard library's log lines to `stream`, by default stderr.

    Args:
        service: Name of this process's service, in every line.
        level: The least level that is written, e.g. `INFO`.
        stream: Where to; lines are written whole.
        json: One JSON object a line; by default unless `stream` is a terminal.
    """
    set_service_name(service)
    target = sys.stderr if stream is None else stream
    as_json = not target.isatty() if json is None else json
    handler = logging.StreamHandler(target)
    handler.setFormatter(_formatter(as_json))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name, least in _NOISY.items():
        logging.getLogger(name).setLevel(max(least, logging.getLevelName(level.upper())))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_common(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _common() -> list[Processor]:
    """What happens to every line, whoever logged it."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_context,
    ]


def _formatter(as_json: bool) -> logging.Formatter:
    rendering: list[Processor] = [_for_people, structlog.dev.ConsoleRenderer()]
    if as_json:
        rendering = [structlog.processors.JSONRenderer(serializer=_dumps)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.PositionalArgumentsFormatter(), *_common()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redact,
            *rendering,
        ],
    )


def _for_people(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Texts of others cannot begin a line or command the terminal; tracebacks keep their lines."""
    return {
        printable(key): printable(value, keep="\n" if key == "exception" else "")
        if isinstance(value, str)
        else value
        for key, value in event.items()
    }


def _dumps(event: EventDict, **_: Any) -> str:
    text = orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
    return escape_hidden(text)


def add_context(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The service, the trace and the message that the line belongs to."""
    event["service"] = service_name()
    if (trace := tracing.current()) is not None:
        event["trace_id"] = trace.trace_id
    if (message := message_context.get()) is not None:
        event.setdefault("group", message.group)
        event.setdefault("topic", message.topic)
        event.setdefault("partition", message.partition)
        event.setdefault("offset", message.offset)
        event.setdefault("event_id", message.event_id)
    return event


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Values of secret keys, and secrets inside texts and tracebacks, are never written."""
    return {key: _clean(key, value) for key, value in event.items()}


def redacted(text: str) -> str:
    """The text without the secrets that can be told by how they stand there."""
    text = _SECRET_IN_URL.sub(rf"\g<kept>{REDACTED}", text)
    return _KEY.sub(REDACTED, _SECRET_TEXT.sub(rf"\g<kept>{REDACTED}", text))


def _bounded(text: str) -> str:
    """Both ends of a text that is too long for a log line: a traceback's cause is at its end."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    half = MAX_TEXT_CHARS // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"


def _clean(key: object, value: Any) -> Any:
    if isinstance(key, str) and _SECRET_KEY.search(key) and value is not None:
        return REDACTED
    if isinstance(value, str):
        value = _bounded(value)
        return redacted(value)
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes"
    if isinstance(value, Mapping):
        return {inner: _clean(inner, item) for inner, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(None, item) for item in value]
    if isinstance(value, BaseException):
        return _clean(None, repr(value))
    return value
