"""Passes connections on: `forward.py LISTEN=TARGET...`, each `unix:PATH` or `tcp:HOST:PORT`.

It runs twice for every server. On the host from a socket file to the server, which listens on
loopback; and in a container that has the server's name in the Compose network, from the server's
port to that socket file. With `--check tcp:HOST:PORT` it only tries to connect. Standard library
alone: it runs in the image.
"""

import asyncio
import socket
import sys
from contextlib import suppress
from pathlib import Path

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(address: str) -> Streams:
    kind, _, rest = address.partition(":")
    if kind == "unix":
        return await asyncio.open_unix_connection(rest)
    host, _, port = rest.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def listen(address: str, target: str) -> asyncio.AbstractServer:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, asks = await connect(target)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, asks), pump(answers, writer))

    kind, _, rest = address.partition(":")
    if kind == "unix":
        server: asyncio.AbstractServer = await asyncio.start_unix_server(accept, rest)
        open_to_all(Path(rest))
        return server
    host, _, port = rest.rpartition(":")
    return await asyncio.start_server(accept, host, int(port))


def open_to_all(file: Path) -> None:
    file.chmod(0o777)  # the container's user is another one


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(65536):
            sink.write(piece)
            await sink.drain()
    sink.close()


async def main(*pairs: str) -> None:
    servers = [await listen(*pair.split("=", 1)) for pair in pairs]
    await asyncio.gather(*(server.serve_forever() for server in servers))


def check(address: str) -> None:
    host, _, port = address.removeprefix("tcp:").rpartition(":")
    socket.create_connection((host, int(port)), 3.0).close()


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2])
    else:
        asyncio.run(main(*sys.argv[1:]))
