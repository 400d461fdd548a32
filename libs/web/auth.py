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
from libs.web.problems import forbidden, unauthenticated

COOKIE = "sluice_key"

_bearer = HTTPBearer(auto_error=False)
_header = APIKeyHeader(name="X-API-Key", auto_error=False)
_cookie = APIKeyCookie(name=COOKIE, auto_error=False)


def install_auth(app: FastAPI, db: Database) -> None:
    """Let the app's routes look keys up in `db`. A revoked key is refused from the next request."""
    app.state.auth_db = db


async def current_principal(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    header: Annotated[str | None, Depends(_header)],
    cookie: Annotated[str | None, Depends(_cookie)],
) -> Principal:
    """Who is asking. Raises: ProblemError 401."""
    clear = (bearer.credentials if bearer is not None else None) or header or cookie
    if not clear:
        raise unauthenticated("Send an API key: `Authorization: Bearer <key>` or `X-API-Key`.")
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
