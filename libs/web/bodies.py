"""A request's body as it arrives: counted, kept to a pace, and not left hanging at the end."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Send

from libs.web.problems import ProblemError, too_large

LINGER_S = 2.0  # how long the rest of a refused body is read, so that its sender sees the answer


@dataclass(frozen=True, slots=True)
class Pace:
    """How slowly a body may come; only the time spent waiting for the sender counts."""

    piece_s: float = 30.0  # the longest wait for the next piece
    grace_s: float = 60.0  # all waits together, plus what `min_bytes_per_s` grants
    min_bytes_per_s: int = 1_000

    def left_s(self, waited_s: float, received_bytes: int) -> float:
        """How long the next piece may take."""
        budget_s = self.grace_s + received_bytes / self.min_bytes_per_s - waited_s
        return min(self.piece_s, budget_s)


class RequestBody:
    """`receive` and `send` of one request, guarded.

    `receive` raises ProblemError 413 beyond `max_bytes` (None: whoever reads bounds it) and 408
    when the body comes slower than `pace`. `send` ends the connection after an answer that did
    not wait for the whole body: an endless one would be read for ever.
    """

    def __init__(
        self, headers: Headers, receive: Receive, send: Send, pace: Pace, max_bytes: int | None
    ) -> None:
        self._receive = receive
        self._send = send
        self._pace = pace
        self._max_bytes = max_bytes
        self._received = 0
        self._waited_s = 0.0
        declared = headers.get("content-length", "0")
        self._whole = declared == "0" and "transfer-encoding" not in headers
        self._unasked = "expect" in headers  # the sender waits for our word before it begins
        self._answering = self._cut = False

    async def receive(self) -> Message:
        self._unasked = False
        if self._whole or self._answering:  # only the end of the connection is waited for
            return await self._receive()
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._pace.left_s(self._waited_s, self._received)):
                message = await self._receive()
        except TimeoutError as exc:
            raise _too_slow() from exc
        self._waited_s += clock() - began
        self._count(message)
        if self._max_bytes is not None and self._received > self._max_bytes:
            raise over(self._max_bytes)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._answering = True
            if not await self._is_whole():
                self._cut = True
                MutableHeaders(scope=message)["Connection"] = "close"
        elif self._cut and not message.get("more_body"):
            await self._send({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    async def _is_whole(self) -> bool:
        """Whether the body has come to its end, counting what is here already."""
        if not self._unasked:
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await self._drain()
        return self._whole

    async def _linger(self) -> None:
        if not self._unasked:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self._drain()

    async def _drain(self) -> None:
        while not self._whole:
            self._count(await self._receive())

    def _count(self, message: Message) -> None:
        self._received += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)


def over(max_bytes: int) -> ProblemError:
    return too_large(f"The body is over {max_bytes} bytes; send less at once.")


def _too_slow() -> ProblemError:
    return ProblemError(
        408, "body-too-slow", "The body came too slowly; check the connection and send it again."
    )
