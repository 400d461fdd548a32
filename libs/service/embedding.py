"""The embedding model as every process opens it."""

from contextlib import AbstractAsyncContextManager

from libs.models.embedders import EmbeddingServer, open_embedder
from libs.models.ports import Embedder
from libs.service.settings import PlatformSettings


def open_embedding(
    settings: PlatformSettings, *, workers: int | None = None
) -> AbstractAsyncContextManager[Embedder]:
    """The model at EMBED_BASE_URL, or the bundled one; see `open_embedder`."""
    server = None
    if settings.embed_base_url:
        server = EmbeddingServer(
            settings.embed_base_url,
            settings.embed_model,
            settings.embed_api_key,
            settings.embed_query_prefix,
            settings.embed_passage_prefix,
            settings.embed_cosines,
        )
    return open_embedder(server, workers=workers)
