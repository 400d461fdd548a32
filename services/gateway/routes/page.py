"""The plain page: three files, no framework, nothing from elsewhere."""

from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from libs.kernel import NotFoundError
from libs.web import COOKIE
from services.gateway.deps import GatewayDep

router = APIRouter(include_in_schema=False)

_STATIC = Path(__file__).parents[1] / "static"
_FILES = {
    "page.js": "text/javascript",
    "docs.js": "text/javascript",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_LOOPBACK = frozenset({"127.0.0.1", "::1"})
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@router.get("/")
async def page(request: Request, gateway: GatewayDep) -> Response:
    """The page. In local mode it sets the machine's key as a cookie that scripts cannot read.

    Only for a browser on this machine: a Host header is the client's word, its address is not.
    """
    response = FileResponse(_STATIC / "index.html", media_type="text/html", headers=_HEADERS)
    here = request.client is not None and request.client.host in _LOOPBACK
    key = gateway.settings.local_key()
    if key and here:
        response.set_cookie(COOKIE, key, httponly=True, samesite="strict", path="/")
    return response


@router.get("/docs")
async def docs() -> Response:
    """The HTTP API for people to read, drawn from `/openapi.json`."""
    return FileResponse(_STATIC / "docs.html", media_type="text/html", headers=_HEADERS)


@router.get("/static/{name}")
async def asset(name: str) -> Response:
    media_type = _FILES.get(name)
    if media_type is None:
        raise NotFoundError(f"there is no file {name}")
    return FileResponse(_STATIC / name, media_type=media_type, headers=_HEADERS)
