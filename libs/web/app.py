"""How every HTTP app of the platform starts out."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from libs.storage.sql import Database
from libs.web.auth import install_auth
from libs.web.bodies import Pace
from libs.web.health import Missing, health_routes
from libs.web.hosts import HostCheckMiddleware
from libs.web.limits import BodyLimitMiddleware
from libs.web.problems import MEDIA_TYPE, install_problems


class FieldProblem(BaseModel):
    field: str
    message: str


class Problem(BaseModel):
    """RFC 9457. `type` is stable: `urn:sluice:problem:<slug>`."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = []
    trace_id: str | None = None


def new_app(
    title: str,
    *,
    db: Database,
    missing: Missing,
    allowed_hosts: Sequence[str] = (),
    max_body_bytes: int = 1_000_000,
    unlimited_paths: Sequence[str] = (),
    pace: Pace | None = None,
    openapi_url: str | None = "/openapi.json",
    lifespan: Any = None,
) -> FastAPI:
    """An app with problem documents, API keys, Host check, body limit and health routes.

    It has none of the framework's documentation pages: they load their scripts from elsewhere.
    """
    app = FastAPI(
        title=title,
        version="1",
        lifespan=lifespan,
        redirect_slashes=False,
        openapi_url=openapi_url,
        docs_url=None,
        redoc_url=None,
    )
    install_problems(app)
    install_auth(app, db)
    app.add_middleware(
        BodyLimitMiddleware,
        max_bytes=max_body_bytes,
        unlimited=tuple(unlimited_paths),
        pace=pace,
    )
    app.add_middleware(HostCheckMiddleware, allowed=tuple(allowed_hosts))
    app.include_router(health_routes(missing))
    return app


_MEANINGS = {
    401: "No valid API key",
    403: "The key's role does not allow this",
    404: "Unknown here (another tenant's ids are, too)",
    408: "The body came too slowly",
    409: "Contradicts the current state",
    413: "Too large",
    415: "Another media type is needed",
    422: "Not understood; `errors` or `detail` says what to change",
    429: "Too many requests; see Retry-After",
    500: "Our fault; report the trace id",
    503: "A backend is away; see Retry-After",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI `responses` of a route that needs a key and may answer with `statuses` too."""
    content = {MEDIA_TYPE: {"schema": Problem.model_json_schema()}}
    return {
        status: {"description": _MEANINGS[status], "content": content}
        for status in sorted({401, 403, 500, 503, *statuses})
    }
