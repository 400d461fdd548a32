"""structlog as JSON lines on standard error, with the service and the trace of each line."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from libs.observability import tracing
from libs.observability.service import service_name

# Libraries that say at every lost connection what the platform says once.
_NOISY = ("aiokafka", "kafka", "httpx", "pymilvus", "uvicorn.access")


def configure_logs(level: str = "INFO") -> None:
    """Set up logging for the process; call it once, before the first line."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _add_where,
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(
        level=number, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s"
    )
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(number, logging.CRITICAL))


def _add_where(
    _logger: Any, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    line["service"] = line.get("service", service_name())
    if (trace := tracing.current()) is not None:
        line["trace_id"] = trace.trace_id
    return line
