"""The four stores side by side, and what one document has in each."""

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import RowMapping

from libs.storage.keys import document_prefix
from libs.storage.ports import IndexEntry, KeywordIndex, ObjectStore, SearchIndex, VectorIndex
from libs.storage.sql import Database, chunks, documents, graph, index_builds
from libs.storage.sql.active_index import IndexSets, read_sets

NEW = "new "  # what the names of stores of a set that is being built begin with


@dataclass(frozen=True, slots=True)
class Stores:
    """Open for reading; nothing here writes."""

    db: Database
    objects: ObjectStore
    vectors: VectorIndex
    keywords: KeywordIndex

    async def indexes(self) -> dict[str, "StoredIndex"]:
        """By the name of the store: those of the active set, and of one that is being built.

        Raises: TransientError.
        """
        async with self.db.reading() as sql:
            sets = await read_sets(sql)
        return await self._named(sets)

    async def _named(self, sets: IndexSets) -> dict[str, "StoredIndex"]:
        active = sets.active
        found: dict[str, StoredIndex] = {
            "vectors": StoredIndex(self.vectors, active.vector_collection),
            "keywords": StoredIndex(self.keywords, active.keyword_index),
        }
        if sets.building is not None:
            building = sets.building.index
            new = {
                f"{NEW}vectors": StoredIndex(self.vectors, building.vector_collection),
                f"{NEW}keywords": StoredIndex(self.keywords, building.keyword_index),
            }
            if all([await index.exists() for index in new.values()]):  # else: about to be made
                found |= new
        return found

    async def holdings(self, tenant: str, document_id: str) -> "Holdings":
        """Everything that is stored of one document now. Raises: TransientError."""
        async with self.db.reading() as sql:
            sets = await read_sets(sql)
            found = Holdings(await documents.find(sql, tenant, document_id))
            if sets.building is not None:
                found.whole_in_new = await index_builds.marked(
                    sql, sets.building.build_id, document_id
                )
        for store, index in (await self._named(sets)).items():
            found.indexed[store] = defaultdict(set)
            async for page in index.entries(tenant, document_id):
                for entry in page:
                    found.indexed[store][entry.generation].add(entry.chunk_id)
        prefix = document_prefix(tenant, document_id)
        found.objects = {key.removeprefix(prefix) for key in await self.objects.keys(prefix)}
        async with self.db.reading() as sql:
            found.generations = await chunks.generations(sql, tenant, document_id)
            found.graph = await graph.generations(sql, tenant, document_id)
            shown = found.row["active_generation"] if found.row is not None else None
            if shown is not None:
                found.children = await chunks.child_ids(sql, tenant, document_id, shown)
        async with self.db.reading() as sql:
            same_row = found.row == await documents.find(sql, tenant, document_id)
            found.settled = same_row and sets == await read_sets(sql)
        return found


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """One index or collection, by its name in its backend."""

    index: SearchIndex[Any]
    name: str

    def entries(
        self, tenant: str, document_id: str | None = None
    ) -> AsyncIterator[list[IndexEntry]]:
        return self.index.entries(self.name, tenant, document_id)

    async def exists(self) -> bool:
        return await self.index.exists(self.name)


@dataclass(slots=True)
class Holdings:
    """What the stores have of one document.

    `settled`: its row stayed the same meanwhile, and so did the sets of indexes.
    """

    row: RowMapping | None
    indexed: dict[str, dict[int, set[str]]] = field(default_factory=dict)  # by store, generation
    objects: set[str] = field(default_factory=set)  # keys below the document's prefix
    generations: dict[int, int] = field(default_factory=dict)  # in SQL: how many chunks
    graph: dict[int, int] = field(default_factory=dict)  # in SQL: how many facts
    children: set[str] = field(default_factory=set)  # in SQL, of the shown generation
    whole_in_new: int | None = None  # the generation that is whole in a set that is being built
    settled: bool = False
