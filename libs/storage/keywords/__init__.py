"""Keyword indexes: terms in, BM25 hits out."""

from libs.storage.keywords.tantivy import TantivyKeywords

__all__ = ["TantivyKeywords"]
