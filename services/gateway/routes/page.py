"""The plain page: three files, no framework, nothing from elsewhere."""

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from libs.kernel import NotFoundError
from libs.web import COOKIE
from services.gateway.deps import GatewayDep

router = APIRouter(include_in_schema=False)

_STATIC = Path(__file__).parents[1] / "static"
_FILES = {"page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
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
async def page(gateway: GatewayDep) -> Response:
    """The page. In local mode it sets the machine's key as a cookie that scripts cannot read."""
    response = FileResponse(_STATIC / "index.html", media_type="text/html", headers=_HEADERS)
    key = gateway.settings.local_key()
    if key:
        response.set_cookie(COOKIE, key, httponly=True, samesite="strict", path="/")
    return response


@router.get("/static/{name}")
async def asset(name: str) -> Response:
    media_type = _FILES.get(name)
    if media_type is None:
        raise NotFoundError(f"there is no file {name}")
    return FileResponse(_STATIC / name, media_type=media_type, headers=_HEADERS)
