"""API-key authentication. Routes ask for a `Principal` by annotation; the tenant is its alone."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.security import (
    APIKeyCookie,
    APIKeyHeader,
    HTTPAuthorizationCredentials,
    HTTPBearer,
)

from libs.kernel import Principal
from libs.storage.sql import Database, api_keys
from libs.web.origins import is_own
from libs.web.problems import ProblemError, forbidden, unauthenticated

COOKIE = "sluice_key"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

_bearer = HTTPBearer(auto_error=False)
_header = APIKeyHeader(name="X-API-Key", auto_error=False)
_cookie = APIKeyCookie(name=COOKIE, auto_error=False)


def install_auth(app: FastAPI, db: Database) -> None:
    """Let the app's routes look keys up in `db`. A revoked key is refused from the next request."""
    app.state.auth_db = db


async def presented_key(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    header: Annotated[str | None, Depends(_header)],
    cookie: Annotated[str | None, Depends(_cookie)],
) -> str:
    """The clear key that the request is judged by; a header's before the cookie's.

    Browsers send cookies along with requests that other pages made: a change that the cookie
    stands for must come from our own pages.

    Raises: ProblemError 401, 403.
    """
    clear = (bearer.credentials if bearer is not None else None) or header
    if clear:
        return clear
    if not cookie:
        raise unauthenticated("Send an API key: `Authorization: Bearer <key>` or `X-API-Key`.")
    if request.method not in _SAFE and not is_own(request.headers):
        raise ProblemError(
            403,
            "foreign-origin",
            "The cookie may change things from this server's own pages only. Elsewhere, send the "
            "API key in a header: `Authorization: Bearer <key>` or `X-API-Key`.",
        )
    return cookie


PresentedKey = Annotated[str, Depends(presented_key)]


async def current_principal(request: Request, clear: PresentedKey) -> Principal:
    """Who is asking. Raises: ProblemError 401, 403."""
    db: Database = request.app.state.auth_db
    async with db.reading() as sql:
        principal = await api_keys.authenticate(sql, clear)
    if principal is None:
        raise unauthenticated("This API key is unknown or was revoked; use another one.")
    return principal


def requires(role: str) -> Callable[[Principal], Awaitable[Principal]]:
    """A dependency: the principal, if it has at least `role`. Raises: ProblemError 403."""

    async def check(principal: Annotated[Principal, Depends(current_principal)]) -> Principal:
        if not principal.may(role):
            raise forbidden(
                f"This needs the role {role}; your key has {principal.role}. Use another key."
            )
        return principal

    return check


Reader = Annotated[Principal, Depends(requires("reader"))]
Member = Annotated[Principal, Depends(requires("member"))]
Admin = Annotated[Principal, Depends(requires("admin"))]
