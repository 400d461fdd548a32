"""Server-sent events that survive proxies: heartbeats, no buffering, no compression."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
from sse_starlette import EventSourceResponse, ServerSentEvent

from libs.web.problems import invalid

HEARTBEAT_S = 10.0


def event(type_: str, data: Any, *, seq: int | None = None) -> ServerSentEvent:
    """One event; `data` goes out as JSON on one line, `seq` as the id that clients resume from."""
    text = orjson.dumps(data).decode()
    return ServerSentEvent(text, event=type_, id=str(seq) if seq is not None else None, sep="\n")


def stream(events: AsyncIterator[ServerSentEvent]) -> EventSourceResponse:
    """A stream that pings every 10 s and ends with the iterator, the client or the server."""
    headers = {"Cache-Control": "no-store, no-transform", "Content-Encoding": "identity"}
    return EventSourceResponse(
        events,
        headers=headers,
        ping=HEARTBEAT_S,
        ping_message_factory=lambda: ServerSentEvent(comment="ping", sep="\n"),
        sep="\n",
    )


def last_event_id(header: str | None) -> int:
    """The seq in a Last-Event-ID header; 0 without one. Raises: ProblemError 422."""
    if not header:
        return 0
    if not header.isdecimal() or len(header) > 9:
        raise invalid("bad-last-event-id", "Last-Event-ID is the id of an event of this stream.")
    return int(header)
