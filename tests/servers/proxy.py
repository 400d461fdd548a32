"""A TCP proxy between our code and a server, that cuts, delays and holds back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

Watch = Callable[[bytes], bool]


class Proxy:
    """Listens on a loopback port and passes everything on, until told otherwise.

    Use it on the event loop that made it. What it is told holds for connections that are open and
    for those to come.
    """

    def __init__(self, port: int) -> None:
        self.target = ("127.0.0.1", port)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._cut_when: Watch | None = None
        self.delay_s = 0.0  # before each piece, in both directions
        self.refuses = False  # new connections are closed at once
        self.cuts = 0  # connections that were cut

    @property
    def port(self) -> int:
        assert self._server is not None, "the proxy is not open"
        return int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Break every connection now, without a goodbye."""
        for writer in list(self._open):
            writer.transport.abort()
        self.cuts += 1

    def cut_answer_to(self, request: Watch) -> None:
        """Once: pass on the next piece from the client that `request` picks, then break its
        connection when the answer comes. So the server has done it and the client does not know.
        """
        self._cut_when = request

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        for pump in list(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        try:
            target_reader, target_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(writer, target_writer)
        self._open |= {writer, target_writer}
        for source, sink, asks in (
            (reader, target_writer, True),
            (target_reader, writer, False),
        ):
            pump = asyncio.create_task(self._pass_on(connection, source, sink, asks=asks))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pass_on(
        self,
        connection: "_Connection",
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        *,
        asks: bool,
    ) -> None:
        with suppress(OSError):
            while piece := await source.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if asks and self._cut_when is not None and self._cut_when(piece):
                    self._cut_when = None
                    connection.doomed = True
                elif not asks and connection.doomed:
                    self.cuts += 1
                    break
                sink.write(piece)
                await sink.drain()
        connection.end()
        self._open -= {connection.client, connection.server}


class _Connection:
    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.doomed = False  # the next answer is not passed on

    def end(self) -> None:
        for writer in (self.client, self.server):
            if not writer.is_closing():
                writer.transport.abort()


@asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[Proxy]:
    """A proxy in front of a server, open."""
    proxy = Proxy(port)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
