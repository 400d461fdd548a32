"""A bound on request bodies, checked before and while they arrive."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from libs.web.problems import problem, too_large


class BodyLimitMiddleware:
    """Answers 413 to bodies over `max_bytes`. Paths in `unlimited` bound theirs themselves."""

    def __init__(
        self, app: ASGIApp, max_bytes: int = 1_000_000, unlimited: Collection[str] = ()
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._unlimited = frozenset(unlimited)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._unlimited:
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > self._max_bytes:
            await problem(413, "too-large", self._detail())(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise too_large(self._detail())
            return message

        await self._app(scope, counted, send)

    def _detail(self) -> str:
        return f"The body is over {self._max_bytes} bytes; send less at once."
