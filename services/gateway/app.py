"""The gateway's HTTP app."""

from fastapi import FastAPI

from libs.web import new_app
from services.gateway.deps import Gateway
from services.gateway.routes import (
    admin_dlq,
    admin_keys,
    admin_lag,
    admin_reindex,
    admin_stuck,
    asyncapi,
    conversations,
    docs,
    documents,
    page,
    search,
    turns,
)

# Before `documents`, which takes every path below its own.
ADMIN = (admin_lag, admin_dlq, admin_stuck, admin_keys, admin_reindex)
_UPLOADS = ("/v1/documents",)  # ingest bounds these, the gateway never holds them


def create_app(gateway: Gateway) -> FastAPI:
    """The app over what the composition root built; opens and closes nothing itself."""
    app = new_app(
        "Sluice",
        db=gateway.db,
        missing=gateway.missing,
        allowed_hosts=gateway.settings.allowed_hosts,
        unlimited_paths=_UPLOADS,
        openapi_url=None,  # `routes.docs` serves it, with what ingest has
    )
    app.state.gateway = gateway
    for routes in (*ADMIN, conversations, turns, search, documents, docs, asyncapi, page):
        app.include_router(routes.router)
    return app
