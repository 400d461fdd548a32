"""What the routes work with; built by the composition root, found on the app."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from libs.chunking.cutting import Helpers
from libs.storage.ports import ObjectStore
from libs.storage.room import Room
from libs.storage.sql import Database


@dataclass(frozen=True, slots=True)
class Ingest:
    db: Database
    objects: ObjectStore
    max_upload_bytes: int
    progress_poll_s: float
    room: Room | None = None  # for uploads; None: all there is
    helpers: Helpers = field(default_factory=Helpers)
    # One at a time: each holds a whole document.
    previews: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))


def _ingest(request: Request) -> Ingest:
    ingest: Ingest = request.app.state.ingest
    return ingest


IngestDeps = Annotated[Ingest, Depends(_ingest)]
