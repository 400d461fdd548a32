"""Serving HTTP inside a process that does other things, too."""

import asyncio
import errno
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import structlog
import uvicorn

from libs.kernel import PermanentError, end_tasks
from libs.service.connections import Bounds, bounded
from libs.service.ending import EndingMiddleware
from libs.service.stopping import stopping

log = structlog.get_logger(__name__)

BACKLOG = 2048
GRACE_S = 5.0  # requests get this long after the stop; streams end at once
SEND_TIMEOUT_S = 60.0


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, answering: asyncio.Event) -> None:
        super().__init__(config)
        self._answering = answering

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._answering.set()
        log.info("http_started", addresses=[sock.getsockname()[:2] for sock in sockets or ()])

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # signals belong to the process, which sets `should_exit`

    async def hang_up(self) -> None:
        """Leave no connection to an app whose parts are being closed. For a serving cut short:
        one that ended by itself has none left.
        """
        for connection in tuple(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await end_tasks(*self.server_state.tasks)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        except SystemExit as exc:  # the app's lifespan raised; it was logged with its reason
            raise PermanentError("cannot-start", "the HTTP app failed to start") from exc


def listen_on(host: str, port: int, *, setting: str = "") -> socket.socket:
    """A listening socket. Raises: PermanentError (`port-busy`) that names the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as exc:
        sock.close()
        if exc.errno != errno.EADDRINUSE:
            raise PermanentError("cannot-listen", f"{host}:{port}: {exc.strerror}") from exc
        advice = f"; stop what uses it or set {setting}" if setting else ""
        raise PermanentError("port-busy", f"port {port} on {host} is in use{advice}") from exc
    sock.listen(BACKLOG)
    return sock


def _drop_deaf_clients(sock: socket.socket, timeout_s: float) -> None:
    """Without this a connection that was closed here stays open, and keeps its buffers, until the
    client has read what was sent: for ever, if it does not. Accepted sockets inherit the option.
    """
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout_s * 1000))


async def serve_http(
    app: Any,
    host: str,
    port: int,
    *,
    setting: str = "",
    stop: asyncio.Event | None = None,
    started: asyncio.Event | None = None,
    send_timeout_s: float = SEND_TIMEOUT_S,
    bounds: Bounds | None = None,
) -> None:
    """Serve an ASGI app until the process is told to stop, then end open requests within bounds.

    Args:
        setting: The environment variable that chooses the port, for the message when it is busy.
        stop: Set to end the serving; by default the process's own stop event.
        started: Set once requests are answered.
        send_timeout_s: A client that takes nothing of what is sent for so long is disconnected.
        bounds: Of connections that wait for a request.

    Raises: PermanentError (`port-busy`, `cannot-listen`).
    """
    sock = listen_on(host, port, setting=setting)
    _drop_deaf_clients(sock, send_timeout_s)
    ending = stop or stopping()
    config = uvicorn.Config(
        EndingMiddleware(app, ending, grace_s=GRACE_S),
        http=bounded(bounds or Bounds()),
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=int(GRACE_S) + 2,
        lifespan="on",
        server_header=False,
    )
    server = _Server(config, started or asyncio.Event())
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    asked = asyncio.create_task(ending.wait())
    try:
        await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        for task in (asked, serving):
            task.cancel()
        sock.close()
        await server.hang_up()
