"""Bounds on request bodies, checked before and while they arrive."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from libs.web.bodies import Pace, RequestBody, over
from libs.web.problems import problem


class BodyLimitMiddleware:
    """Answers 413 to bodies over `max_bytes` and 408 to bodies that come slower than `pace`.

    Paths in `unlimited` bound the size of theirs themselves.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int = 1_000_000,
        unlimited: Collection[str] = (),
        pace: Pace | None = None,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._unlimited = frozenset(unlimited)
        self._pace = pace or Pace()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        max_bytes = None if scope["path"] in self._unlimited else self._max_bytes
        body = RequestBody(headers, receive, send, self._pace, max_bytes)
        declared = headers.get("content-length", "")
        if max_bytes is not None and declared.isdecimal() and int(declared) > max_bytes:
            refusal = over(max_bytes)
            answer = problem(refusal.status_code, refusal.slug, refusal.detail)
            await answer(scope, body.receive, body.send)
            return
        await self._app(scope, body.receive, body.send)
