"""Host header check: a page elsewhere that rebinds its name to loopback is refused."""

from collections.abc import Sequence
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from libs.web.problems import problem

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_PROBES = frozenset({"/live", "/ready"})  # orchestrators probe by address
_SCRAPED = "/metrics"  # by address too; a name that was rebound is none


class HostCheckMiddleware:
    """Answers 403 unless the Host header names loopback or one of `allowed` (`*`: any name)."""

    def __init__(self, app: ASGIApp, allowed: Sequence[str] = ()) -> None:
        self._app = app
        self._any = "*" in allowed
        self._allowed = frozenset(name.lower() for name in (*LOOPBACK, *allowed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._any or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        host = _name(Headers(scope=scope).get("host", ""))
        if host in self._allowed or (scope["path"] == _SCRAPED and _is_address(host)):
            await self._app(scope, receive, send)
            return
        detail = "This Host is not served here. Add its name to SLUICE_ALLOWED_HOSTS to allow it."
        await problem(403, "host-not-allowed", detail)(scope, receive, send)


def _name(host: str) -> str:
    """The name in a Host header, without its port; IPv6 keeps its brackets."""
    name = host[: host.find("]") + 1] if host.startswith("[") else host.split(":", 1)[0]
    return name.lower().rstrip(".")


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
