"""Logging, tracing, the process's name and every metric definition.

Metrics are used as `metrics.EVENTBUS_MESSAGES`, traces as `tracing.span(...)`.
"""

from libs.observability import metrics, tracing
from libs.observability.logging import (
    configure_logging,
    message_context,
    redacted,
)
from libs.observability.service import service_name, set_service_name

__all__ = [
    "configure_logging",
    "message_context",
    "metrics",
    "redacted",
    "service_name",
    "set_service_name",
    "tracing",
]
