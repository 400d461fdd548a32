"""What cutting documents asks for help, as every process wires it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.chunking.cutting import Helpers
from libs.service.chat import open_chat
from libs.service.embedding import open_embedding
from libs.service.settings import PlatformSettings
from libs.storage.sql import Database


@asynccontextmanager
async def open_helpers(settings: PlatformSettings, db: Database) -> AsyncIterator[Helpers]:
    """Opens at once: the embedding process starts with the first plan that says `semantic`."""
    async with (
        open_embedding(settings, workers=1) as embedder,
        open_chat(settings, db) as model,
    ):
        yield Helpers(embedder, model)
