"""Vector indexes: unit vectors in, nearest rows by cosine out."""

from libs.storage.vectors.flushing import FlushPolicy
from libs.storage.vectors.milvus import MilvusVectors

__all__ = ["FlushPolicy", "MilvusVectors"]
