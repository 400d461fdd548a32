"""Counts and times requests, by route template: paths hold ids, which metrics must not."""

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from libs.observability.metrics import HTTP_REFUSED, HTTP_REQUESTS, HTTP_SECONDS

_REFUSALS = {401: "key", 403: "forbidden", 408: "slow", 413: "size", 415: "type", 429: "rate"}
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_ROUTE = "none"  # refused before a route was found, or there is none


class MeasuringMiddleware:
    """Around everything else, so that what the other layers refuse is counted too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()

        async def measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                _count(scope, message["status"], perf_counter() - started)
            await send(message)

        await self._app(scope, receive, measured)


def _count(scope: Scope, status: int, seconds: float) -> None:
    route = getattr(scope.get("route"), "path", None) or NO_ROUTE
    method = scope["method"] if scope["method"] in _METHODS else "other"
    HTTP_REQUESTS.labels(route, method, str(status)).inc()
    HTTP_SECONDS.labels(route).observe(seconds)
    if status in _REFUSALS:
        HTTP_REFUSED.labels(_REFUSALS[status]).inc()
