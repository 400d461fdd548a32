"""Server-sent events of a turn: the SSE id is the seq, and a replay equals the live stream."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping

import structlog
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from libs.service.http import SEND_TIMEOUT_S
from libs.storage.sql.turn_events import TurnEvent, canonical_json

log = structlog.get_logger(__name__)

_HEARTBEAT = b": heartbeat\n\n"
_HEADERS = {
    "Cache-Control": "no-store, no-transform",
    "Content-Encoding": "identity",  # nginx compresses nothing that names its encoding
    "X-Accel-Buffering": "no",  # nginx passes each event on at once
}


def frame(event: TurnEvent) -> bytes:
    """The same bytes for the same event, whenever and by whichever replica it is sent."""
    return f"id: {event.seq}\nevent: {event.type}\ndata: {canonical_json(event.data)}\n\n".encode()


async def frames(events: AsyncGenerator[TurnEvent | None, None]) -> AsyncGenerator[bytes, None]:
    """Frames of events; a heartbeat comment where nothing happened."""
    try:
        async for event in events:
            yield _HEARTBEAT if event is None else frame(event)
    finally:
        await events.aclose()


class _SlowClientError(Exception):
    """The client took nothing for too long."""


class BoundedStream(StreamingResponse):
    """A stream whose client takes each block within `send_timeout_s`, or is dropped: its answer
    is left incomplete, so that it knows. However it ends, `close` frees its source.
    """

    def __init__(
        self,
        source: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]],
        *,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        send_timeout_s: float = SEND_TIMEOUT_S,
    ) -> None:
        super().__init__(source, status_code, headers)
        self._close = close
        self._send_timeout_s = send_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(self._send_timeout_s):
                    await send(message)
            except TimeoutError as exc:
                raise _SlowClientError from exc

        try:
            await super().__call__(scope, receive, send_in_time)
        except* _SlowClientError:
            log.info("slow_client_dropped", path=scope["path"], after_s=self._send_timeout_s)
        finally:
            await self._close()


class EventStream(BoundedStream):
    """Server-sent events, with the headers that keep proxies from holding them back."""

    media_type = "text/event-stream"

    def __init__(
        self, source: AsyncGenerator[bytes, None], *, send_timeout_s: float = SEND_TIMEOUT_S
    ) -> None:
        super().__init__(source, source.aclose, headers=_HEADERS, send_timeout_s=send_timeout_s)
