"""Search indexes in memory, and an embedder that knows nothing but words."""

import asyncio
import hashlib
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from libs.documents.analysis import analyse, inverse_document_frequency
from libs.kernel import TransientError
from libs.storage.ports import Frequencies, IndexEntry, IndexHit, IndexRow, Vector

Rows = dict[tuple[str, str], IndexRow]


@dataclass
class FakeIndex:
    """What both kinds share. `away` makes every call fail as a lost backend would."""

    rows: dict[str, Rows] = field(default_factory=dict)
    away: bool = False

    async def ensure(self, name: str) -> None:
        self._check()
        self.rows.setdefault(name, {})

    async def drop(self, name: str) -> None:
        self._check()
        self.rows.pop(name, None)

    async def exists(self, name: str) -> bool:
        self._check()
        return name in self.rows

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        self._check(name)
        for row in rows:
            self.rows[name][row.tenant, row.chunk_id] = row

    async def delete(
        self, name: str, tenant: str, document_id: str, *, generations: range | None = None
    ) -> None:
        self._check(name)
        for key, row in list(self.rows[name].items()):
            mine = row.tenant == tenant and row.document_id == document_id
            if mine and (generations is None or row.generation in generations):
                del self.rows[name][key]

    async def count(self, name: str, tenant: str, document_id: str | None = None) -> int:
        self._check(name)
        return len([r for r in self._of(name, tenant) if document_id in (None, r.document_id)])

    async def entries(
        self, name: str, tenant: str, document_id: str | None = None
    ) -> AsyncIterator[list[IndexEntry]]:
        self._check(name)
        for row in self._of(name, tenant):
            if document_id in (None, row.document_id):
                yield [IndexEntry(row.chunk_id, row.document_id, row.generation)]

    def _of(
        self,
        name: str,
        tenant: str,
        domains: Sequence[str] = (),
        documents: Sequence[str] = (),
    ) -> list[IndexRow]:
        rows = [row for row in self.rows[name].values() if row.tenant == tenant]
        rows = [row for row in rows if not documents or row.document_id in documents]
        return [row for row in rows if not domains or row.domain in domains]

    def _check(self, name: str | None = None) -> None:
        if self.away:
            raise TransientError("the fake index is away")
        if name is not None and name not in self.rows:
            raise TransientError(f"there is no fake index {name}")


class FakeVectors(FakeIndex):
    async def search(
        self,
        name: str,
        tenant: str,
        query: Vector,
        limit: int,
        *,
        domains: Sequence[str] = (),
        documents: Sequence[str] = (),
    ) -> list[IndexHit]:
        self._check(name)
        scored = [
            (float(row.vector @ query), row)
            for row in self._of(name, tenant, domains, documents)
            if row.vector is not None
        ]
        return _best(scored, limit)


class FakeKeywords(FakeIndex):
    async def search(
        self,
        name: str,
        tenant: str,
        query: Sequence[str],
        limit: int,
        *,
        domains: Sequence[str] = (),
        documents: Sequence[str] = (),
    ) -> list[IndexHit]:
        known = await self.frequencies(name, tenant, query)
        weights = {t: inverse_document_frequency(known.total, n) for t, n in known.rows.items()}
        scored = [
            (sum(weights[t] * math.log1p(row.terms.count(t)) for t in set(query)), row)
            for row in self._of(name, tenant, domains, documents)
        ]
        return _best([(score, row) for score, row in scored if score > 0], limit)

    async def frequencies(self, name: str, tenant: str, terms: Sequence[str]) -> Frequencies:
        self._check(name)
        rows = self._of(name, tenant)
        return Frequencies(len(rows), {t: sum(t in row.terms for row in rows) for t in set(terms)})


class FakeEmbedder:
    """Hashed bags of terms: texts that share words are near each other, others are not."""

    name = "fake-words"
    dimension = 64

    async def ready(self) -> None:
        pass

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([_bag(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return _bag(text)

    def calibrate(self, cosine: float) -> float:
        return min(1.0, max(0.0, cosine))


def _bag(text: str) -> NDArray[np.float32]:
    vector = np.full(FakeEmbedder.dimension, 1e-6, dtype=np.float32)
    for term in analyse(text):
        vector[int(hashlib.sha256(term.encode()).hexdigest(), 16) % len(vector)] += 1.0
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def _best(scored: list[tuple[float, IndexRow]], limit: int) -> list[IndexHit]:
    ranked = sorted(scored, key=lambda pair: (-pair[0], pair[1].chunk_id))
    return [IndexHit(r.chunk_id, r.document_id, r.generation, s) for s, r in ranked[:limit]]


class HeldEmbedder(FakeEmbedder):
    """Embeds passages when the test says so."""

    def __init__(self) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()
        self.calls = 0
        self.texts: list[str] = []  # that were embedded

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.set()
        self.calls += 1
        await self.go.wait()
        self.texts += texts
        return await super().embed_passages(texts)
