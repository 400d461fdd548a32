"""Search: channels, floors, fusion, the gate and evidence under a budget."""

from libs.retrieval.policy import RetrievalPolicy
from libs.retrieval.retriever import Retriever
from libs.retrieval.types import Evidence, Hit, Passage, Scores

__all__ = ["Evidence", "Hit", "Passage", "RetrievalPolicy", "Retriever", "Scores"]
