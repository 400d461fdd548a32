"""The ingest HTTP app."""

from collections.abc import Sequence

from fastapi import FastAPI

from libs.web import Missing, new_app
from services.ingest.api.deps import Ingest
from services.ingest.api.routes import contents, documents


def create_app(ingest: Ingest, *, missing: Missing, allowed_hosts: Sequence[str] = ()) -> FastAPI:
    """The app over what the composition root built; opens and closes nothing itself."""
    app = new_app(
        "Sluice ingest",
        db=ingest.db,
        missing=missing,
        allowed_hosts=allowed_hosts,
        unlimited_paths=("/v1/documents",),  # uploads bound themselves as they stream
    )
    app.state.ingest = ingest
    app.include_router(documents.router)
    app.include_router(contents.router)
    return app
