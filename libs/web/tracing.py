"""One step of a trace for each request: what it publishes and asks for belongs to it."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from libs.observability import tracing
from libs.web.measuring import NO_ROUTE

_UNTRACED = frozenset({"/live", "/ready", "/metrics"})  # asked every few seconds, by machines


class TracingMiddleware:
    """Continues the caller's `traceparent`, or begins a trace."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _UNTRACED:
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        caller = tracing.parse(Headers(scope=scope).get("traceparent"))
        step = tracing.span(method, caller)

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", None) or NO_ROUTE
                step.tell(f"{method} {route}", status=message["status"])
            await send(message)

        with step:
            await self._app(scope, receive, named)
