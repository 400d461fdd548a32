"""The search stack as every process wires it: one embedding space, one pair of indexes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from libs.models.ports import Embedder, Reranker
from libs.models.rerank import open_reranker
from libs.retrieval import RetrievalPolicy, Retriever
from libs.service.embedding import open_embedding
from libs.service.settings import PlatformSettings
from libs.storage.keywords import TantivyKeywords
from libs.storage.ports import KeywordIndex
from libs.storage.sql import Database
from libs.storage.vectors import MilvusVectors

if TYPE_CHECKING:
    from libs.storage.keywords.elasticsearch import ElasticsearchKeywords

PROBE_TENANT = "sluice-probe"  # has no documents, and no key can belong to it


@dataclass(frozen=True, slots=True)
class SearchStack:
    embedder: Embedder
    vectors: MilvusVectors
    keywords: KeywordIndex
    reranker: Reranker | None = None

    def retriever(self, db: Database, policy: RetrievalPolicy | None = None) -> Retriever:
        stores = (self.vectors, self.keywords)
        return Retriever(db, self.embedder, *stores, policy, self.reranker)


@asynccontextmanager
async def open_search(
    settings: PlatformSettings, *, writes: bool = False, embed_workers: int | None = None
) -> AsyncIterator[SearchStack]:
    """Opens at once; connections, the model and worker processes come with their first use.

    Args:
        writes: For the one process that owns the keyword index in a folder: the indexer. On
            Elasticsearch every process may write.
        embed_workers: Processes that embed passages; None is one per core.
    """
    keywords = _keywords(settings, writes=writes)
    async with (
        open_embedding(settings, workers=embed_workers) as embedder,
        open_reranker(
            settings.rerank_base_url,
            settings.rerank_model,
            settings.rerank_api_key,
            settings.rerank_model_dir,
        ) as reranker,
    ):
        stack = SearchStack(
            embedder,
            MilvusVectors(
                settings.milvus_uri, lambda: embedder.dimension, token=settings.milvus_token
            ),
            keywords,
            reranker,
        )
        try:
            yield stack
        finally:
            await stack.vectors.close()
            await keywords.close()


def _keywords(
    settings: PlatformSettings, *, writes: bool
) -> "TantivyKeywords | ElasticsearchKeywords":
    if not settings.elasticsearch_url:
        return TantivyKeywords(settings.keywords_dir, writes=writes)
    # Its client takes a second to import, which the local stack need not wait for.
    from libs.storage.keywords.elasticsearch import ElasticsearchKeywords

    return ElasticsearchKeywords(settings.elasticsearch_url)
