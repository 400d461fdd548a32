"""The four stores side by side, and what one document has in each."""

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from sqlalchemy import RowMapping

from libs.storage.keys import document_prefix
from libs.storage.ports import IndexEntry, KeywordIndex, ObjectStore, VectorIndex
from libs.storage.sql import Database, chunks, documents
from libs.storage.sql.active_index import ActiveIndex

INDEXES = ("vectors", "keywords")


@dataclass(frozen=True, slots=True)
class Stores:
    """Open for reading; nothing here writes."""

    db: Database
    objects: ObjectStore
    vectors: VectorIndex
    keywords: KeywordIndex
    active: ActiveIndex

    def entries(
        self, store: str, tenant: str, document_id: str | None = None
    ) -> AsyncIterator[list[IndexEntry]]:
        """Rows of one of `INDEXES`."""
        if store == "vectors":
            return self.vectors.entries(self.active.vector_collection, tenant, document_id)
        return self.keywords.entries(self.active.keyword_index, tenant, document_id)

    async def holdings(self, tenant: str, document_id: str) -> "Holdings":
        """Everything that is stored of one document now. Raises: TransientError."""
        found = Holdings(await self._row(tenant, document_id))
        for store in INDEXES:
            async for page in self.entries(store, tenant, document_id):
                for entry in page:
                    found.indexed[store][entry.generation].add(entry.chunk_id)
        prefix = document_prefix(tenant, document_id)
        found.objects = {key.removeprefix(prefix) for key in await self.objects.keys(prefix)}
        async with self.db.reading() as sql:
            found.generations = await chunks.generations(sql, tenant, document_id)
            shown = found.row["active_generation"] if found.row is not None else None
            if shown is not None:
                found.children = await chunks.child_ids(sql, tenant, document_id, shown)
        found.settled = found.row == await self._row(tenant, document_id)
        return found

    async def _row(self, tenant: str, document_id: str) -> RowMapping | None:
        async with self.db.reading() as sql:
            return await documents.find(sql, tenant, document_id)


def _by_generation() -> dict[str, dict[int, set[str]]]:
    return {store: defaultdict(set) for store in INDEXES}


@dataclass(slots=True)
class Holdings:
    """What the stores have of one document. `settled`: its row stayed the same meanwhile."""

    row: RowMapping | None
    indexed: dict[str, dict[int, set[str]]] = field(default_factory=_by_generation)
    objects: set[str] = field(default_factory=set)  # keys below the document's prefix
    generations: dict[int, int] = field(default_factory=dict)  # in SQL: how many chunks
    children: set[str] = field(default_factory=set)  # in SQL, of the shown generation
    settled: bool = False

    @property
    def nothing(self) -> bool:
        in_index = any(self.indexed[store] for store in INDEXES)
        return not (in_index or self.objects or self.generations)
