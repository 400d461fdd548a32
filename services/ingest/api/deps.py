"""What the routes work with; built by the composition root, found on the app."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

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


def _ingest(request: Request) -> Ingest:
    ingest: Ingest = request.app.state.ingest
    return ingest


IngestDeps = Annotated[Ingest, Depends(_ingest)]
