"""How HTTP requests end when their process is to: none gets an error that it did not have."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from libs.kernel import end_tasks
from libs.web.problems import RETRY_AFTER_S, problem

_STOPPING = "This process is being stopped. Send the request again: another one answers it."


class EndingMiddleware:
    """Once `stop` is set, event streams end at once and cleanly, so that their clients go on
    elsewhere; other requests get `grace_s`, and one that has no answer by then is told to come
    again (503). The work of either is cancelled.
    """

    def __init__(self, app: ASGIApp, stop: asyncio.Event, *, grace_s: float) -> None:
        self._app = app
        self._stop = stop
        self._grace_s = grace_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        work = asyncio.ensure_future(self._app(scope, receive, answer.send))
        ending = asyncio.ensure_future(self._end(work, answer))
        try:
            await asyncio.wait({work, ending}, return_when=asyncio.FIRST_COMPLETED)
            await (ending if self._stop.is_set() else work)
        finally:
            await end_tasks(ending, work)

    async def _end(self, work: "asyncio.Future[None]", answer: "_Answer") -> None:
        await self._stop.wait()
        if not answer.streams:
            await asyncio.wait({work}, timeout=self._grace_s)
        if work.done():
            await work
            return
        await end_tasks(work)
        await answer.end()


class _Answer:
    """What of an answer was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._ended = False
        self.streams = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.streams = any(
                name.lower() == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in message.get("headers", ())
            )
        elif message["type"] == "http.response.body":
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        """A stream ends as if it had no more to say; half a file is left cut off."""
        if not self._started:
            refusal = problem(
                503, "stopping", _STOPPING, headers={"Retry-After": str(RETRY_AFTER_S)}
            )
            head = {"type": "http.response.start", "status": 503, "headers": refusal.raw_headers}
            await self.send(head)
            await self.send({"type": "http.response.body", "body": refusal.body})
        elif self.streams and not self._ended:
            await self.send({"type": "http.response.body", "body": b""})
