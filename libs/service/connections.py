"""HTTP connections that are bounded before a request has begun, where no app can bound them."""

import asyncio
import resource
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11
import structlog
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from libs.web.problems import problem

log = structlog.get_logger(__name__)

_SPARE_FILES = 200  # descriptors that are not for connections: databases, logs, indexes
_MIN_CONNECTIONS = 50


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a request's head may take, and how many connections there may be at a time.

    Args:
        head_s: From the connection, or from the head's first byte on one that is kept, to its end.
        max_connections: One more is hung up on; None: what the process's open files leave.
    """

    head_s: float = 10.0
    max_connections: int | None = None

    @property
    def most(self) -> int:
        if self.max_connections is not None:
            return self.max_connections
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(_MIN_CONNECTIONS, files - _SPARE_FILES)


def bounded(bounds: Bounds) -> Any:
    """What uvicorn takes as its `http`."""
    return partial(BoundedConnection, bounds=bounds)


class BoundedConnection(H11Protocol):
    """Ends a connection whose request does not come, with 408 once a part of it has."""

    def __init__(self, config: uvicorn.Config, *, bounds: Bounds, **options: Any) -> None:
        super().__init__(config, **options)
        self._bounds = bounds
        self._ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._bounds.most:
            log.warning("connection_refused", open=len(self.connections) - 1)
            transport.abort()
            return
        self._begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()  # the next request may have begun before this one was answered

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._cancel()
        elif self._ending is None and self._has_begun():
            self._begin()

    def _has_begun(self) -> bool:
        return bool(self.conn.trailing_data[0])

    def _begin(self) -> None:
        self._ending = self.loop.call_later(self._bounds.head_s, self._end)

    def _cancel(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

    def _end(self) -> None:
        if self.transport.is_closing():
            return
        if self._has_begun():
            self._refuse()
        self.transport.close()

    def _refuse(self) -> None:
        answer = problem(
            408,
            "head-too-slow",
            "The request's head came too slowly; check the connection and send it again.",
            headers={"Connection": "close"},
        )
        for event in (
            h11.Response(status_code=408, headers=answer.raw_headers, reason=b"Request Timeout"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
