"""What the platform asks of its stores. One behaviour suite per port runs on every backend."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Q = TypeVar("Q", contravariant=True)
Vector = NDArray[np.float32]


class ObjectStore(Protocol):
    """Immutable blobs under keys like `tenant/document/generation/text.txt`.

    Raises (every method): TransientError when the store cannot be reached; DiskError when it is
    full or cannot be written.
    """

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        """Store a stream and return its size in bytes; all or nothing, an old value is replaced."""
        ...

    async def put(self, key: str, data: bytes) -> None:
        """Store a small blob in one step."""
        ...

    async def get(self, key: str) -> bytes:
        """Raises: NotFoundError."""
        ...

    def stream(self, key: str) -> AsyncIterator[bytes]:
        """Read in blocks of bounded size. Raises: NotFoundError."""
        ...

    async def link(self, key: str, disposition: str, media_type: str) -> str | None:
        """An address where anybody may read the object for a minute, without a key of ours.

        Args:
            disposition, media_type: The headers that it comes with.

        None: this store gives no such addresses; read the object instead.
        """
        ...

    async def delete_prefix(self, prefix: str) -> int:
        """Remove every key that starts with `prefix`; returns how many there were."""
        ...

    async def keys(self, prefix: str) -> list[str]:
        """Every key that starts with `prefix`, sorted."""
        ...

    def pages(self, prefix: str) -> AsyncIterator[list[str]]:
        """The same keys in no order, a bounded number at a time: for looking through all of it.

        What is written or deleted meanwhile may be among them or not.
        """
        ...

    async def sweep(self) -> int:
        """Remove what writers that died left unfinished; returns how many such writes there were.

        Writers at work keep theirs.
        """
        ...


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One child chunk as the search backends see it."""

    chunk_id: str
    tenant: str
    document_id: str
    generation: int
    domain: str
    vector: Vector | None = None  # float32, unit length; the vector index needs it
    terms: Sequence[str] = ()  # analysed terms; the keyword index needs them


@dataclass(frozen=True, slots=True)
class IndexHit:
    chunk_id: str
    document_id: str
    generation: int
    score: float  # raw: cosine for vectors, BM25 for keywords


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A stored row, without what makes it findable."""

    chunk_id: str
    document_id: str
    generation: int


class SearchIndex(Protocol[Q]):
    """A vector index (`Q` = Vector) or a keyword index (`Q` = Sequence[str] of terms).

    `name` is the collection or index; the `active_index` row in SQL says which one is read.
    Every call is confined to one tenant. A repeat of any write is harmless.
    Raises (every method): TransientError when the backend cannot be reached.
    """

    async def ensure(self, name: str) -> None:
        """Create the index or collection unless it is there."""
        ...

    async def drop(self, name: str) -> None:
        """Remove the index or collection with all that is in it, if it is there.

        Whatever comes for it later fails with TransientError, and does not make it again.
        """
        ...

    async def exists(self, name: str) -> bool: ...

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        """Rows are durable and findable when this returns."""
        ...

    async def search(
        self,
        name: str,
        tenant: str,
        query: Q,
        limit: int,
        *,
        domains: Sequence[str] = (),
        documents: Sequence[str] = (),
    ) -> list[IndexHit]:
        """Best first, of the given domains and documents; none given: of any.

        May hold stale generations: SQL decides what is visible. Every document costs some
        0.1 ms, so a few hundred are the most that pay.
        """
        ...

    async def delete(
        self, name: str, tenant: str, document_id: str, *, generations: range | None = None
    ) -> None:
        """Drop the document's rows, or only those of the given generations (step 1)."""
        ...

    async def count(self, name: str, tenant: str, document_id: str | None = None) -> int:
        """How many rows the tenant, or one of its documents, has."""
        ...

    def entries(
        self, name: str, tenant: str, document_id: str | None = None
    ) -> AsyncIterator[list[IndexEntry]]:
        """Every row of the tenant, or of one of its documents, in no order, a page at a time.

        What is written or deleted meanwhile may be among them or not.
        """
        ...


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many of a tenant's `total` rows each asked term occurs."""

    total: int
    rows: Mapping[str, int]


class KeywordIndex(SearchIndex[Sequence[str]], Protocol):
    """A keyword index also knows how rare its terms are."""

    async def frequencies(self, name: str, tenant: str, terms: Sequence[str]) -> Frequencies: ...


VectorIndex = SearchIndex[Vector]
