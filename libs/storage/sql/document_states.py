"""The life of a document: which state may follow which. Pure; nothing else decides it."""

from enum import StrEnum


class DocumentState(StrEnum):
    UPLOADED = "uploaded"
    PARSED = "parsed"
    CHUNKED = "chunked"
    INDEXED = "indexed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DELETED = "deleted"


_S = DocumentState

RUNNING = frozenset({_S.UPLOADED, _S.PARSED, _S.CHUNKED})  # a stage still has work to do
FINAL = frozenset({_S.INDEXED, _S.FAILED, _S.CANCELLED, _S.DELETED})  # nothing comes by itself
# The state that a stage's work starts from, and so the only one that it may fail.
STARTS_FROM = {"parse": _S.UPLOADED, "chunk": _S.PARSED, "index": _S.CHUNKED}
# The reason of a chunk stage that found no parse in the object store: only a new parse helps.
MISSING_PARSE = "missing-parse"

# Within one generation.
_NEXT: dict[DocumentState, frozenset[DocumentState]] = {
    _S.UPLOADED: frozenset({_S.PARSED, _S.FAILED, _S.CANCELLED, _S.DELETED}),
    _S.PARSED: frozenset({_S.CHUNKED, _S.FAILED, _S.CANCELLED, _S.DELETED}),
    _S.CHUNKED: frozenset({_S.INDEXED, _S.FAILED, _S.CANCELLED, _S.DELETED}),
    _S.INDEXED: frozenset({_S.DELETED}),
    _S.FAILED: frozenset({_S.UPLOADED, _S.PARSED, _S.CHUNKED, _S.DELETED}),  # resumed
    _S.CANCELLED: frozenset({_S.DELETED}),
    _S.DELETED: frozenset(),
}


def may_follow(state: str, to: str) -> bool:
    """Whether a generation may go from `state` to `to`. Raises: ValueError for unknown states."""
    return DocumentState(to) in _NEXT[DocumentState(state)]
