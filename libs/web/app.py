"""How every HTTP app of the platform starts out."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI

from libs.storage.sql import Database
from libs.web.auth import install_auth
from libs.web.bodies import Pace
from libs.web.health import Missing, health_routes
from libs.web.hosts import HostCheckMiddleware
from libs.web.limits import BodyLimitMiddleware
from libs.web.measuring import MeasuringMiddleware
from libs.web.openapi import install_openapi
from libs.web.problems import install_problems
from libs.web.tracing import TracingMiddleware


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
    install_openapi(app)
    install_auth(app, db)
    app.add_middleware(
        BodyLimitMiddleware,
        max_bytes=max_body_bytes,
        unlimited=tuple(unlimited_paths),
        pace=pace,
    )
    app.add_middleware(HostCheckMiddleware, allowed=tuple(allowed_hosts))
    app.add_middleware(TracingMiddleware)
    app.add_middleware(MeasuringMiddleware)
    app.include_router(health_routes(missing))
    return app
