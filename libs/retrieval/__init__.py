"""Search: channels, floors, fusion, the gate and evidence under a budget."""

from libs.retrieval.policy import RetrievalPolicy
from libs.retrieval.retriever import Query, Result, Retriever
from libs.retrieval.types import Evidence, Hit, Passage, Scores

__all__ = [
    "Evidence",
    "Hit",
    "Passage",
    "Query",
    "Result",
    "RetrievalPolicy",
    "Retriever",
    "Scores",
]
