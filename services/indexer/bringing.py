"""Bringing one document after the other into a set of indexes that is being built."""

from dataclasses import dataclass, field

from sqlalchemy import RowMapping

from libs.kernel import ConflictError, NotFoundError
from libs.service.recutting import is_stored, recut
from libs.storage.sql import UnitOfWork, active_index, alike, chunks, documents, index_builds
from libs.storage.sql.active_index import Building
from services.indexer.deps import Deps
from services.indexer.domain import Bring, Rank, batches, how_to_bring
from services.indexer.likeness import likeness_in
from services.indexer.writing import BACKGROUND_BATCH, Target, write_batch

_PAGE = 100
_CUT_AT_ONCE = 4  # documents in the pipeline, so that live ones never wait behind many


@dataclass(slots=True)
class Bringing:
    """One pass over the documents that are not whole in the new set."""

    deps: Deps
    building: Building
    rechunk: bool
    _being_cut: int = field(default=0, init=False)

    async def missing(self, after: str) -> list[RowMapping]:
        """The next of them, by ascending id; none once the build is over."""
        async with self.deps.db.reading() as sql:
            if not await is_open(sql, self.building):
                return []
            id_ = self.building.build_id
            return await index_builds.missing(sql, id_, after=after, limit=_PAGE)

    async def bring(self, row: RowMapping) -> bool:
        """False: it is not there yet. Raises: TransientError."""
        how = how_to_bring(row["state"], rechunk=self.rechunk, asked_anew=bool(row["asked_anew"]))
        if how is Bring.WAIT:
            self._being_cut += 1
            return False
        if how is Bring.CUT_ANEW and await self._has_parse(row):
            if self._being_cut < _CUT_AT_ONCE:
                self._being_cut += 1
                await self._cut_anew(row)
            return False
        return await self._copy(row)

    async def _has_parse(self, row: RowMapping) -> bool:
        of = (row["tenant"], row["id"], row["active_generation"])
        return await is_stored(self.deps.objects, of)

    async def _cut_anew(self, row: RowMapping) -> None:
        """A new generation from the stored parse; the pipeline brings it into both sets.

        Marked afterwards: whoever dies in between leaves a generation in work, and that is waited
        for. Marked before, it would be copied as it is.
        """
        deps, source = self.deps, row["active_generation"]
        try:
            await recut(deps.db, deps.objects, row, source, why="reindex", background=True)
        except (ConflictError, NotFoundError):  # it changed meanwhile: the next pass looks again
            return
        async with deps.db.work() as sql:
            sets = await active_index.read_sets(sql, lock=True)
            done = await index_builds.marked(sql, self.building.build_id, row["id"])
            if sets.building == self.building and done in {None, source}:
                asked = index_builds.ASKED_ANEW
                await index_builds.mark(sql, self.building.build_id, row["id"], asked)

    async def _copy(self, row: RowMapping) -> bool:
        """Bring what search shows of a document into the new set; False: it changed meanwhile."""
        of = (row["tenant"], row["id"], row["active_generation"])
        target = Target(*of, row["domain"], (self.building.index,))
        async with self.deps.db.reading() as sql:
            children = await chunks.children(sql, *of)
        with self.deps.precedence.lane(Rank.BACKGROUND):
            for batch in batches(children, BACKGROUND_BATCH):
                await self.deps.precedence.turn(Rank.BACKGROUND)
                if not await self._is_due(*of):
                    break
                await write_batch(target, self.deps, batch)
        return await self._mark(*of)

    async def _is_due(self, tenant: str, document_id: str, generation: int) -> bool:
        async with self.deps.db.reading() as sql:
            row = await documents.find(sql, tenant, document_id)
            shown = row is not None and row["active_generation"] == generation
            return shown and await is_open(sql, self.building)

    async def _mark(self, tenant: str, document_id: str, generation: int) -> bool:
        """Say that the generation is whole in the new set, or take it back: it is over."""
        of, one = (tenant, document_id), range(generation, generation + 1)
        likeness = await likeness_in(self.deps, *of, generation)
        async with self.deps.db.work() as sql:
            sets = await active_index.read_sets(sql, lock=True)
            if sets.building != self.building:
                return False
            row = await documents.find(sql, *of, lock=True)
            if row is not None and row["active_generation"] == generation:
                await index_builds.mark(sql, self.building.build_id, document_id, generation)
                await alike.put(sql, *of, generation, likeness)  # older versions made none
                return True
        index = self.building.index
        await self.deps.vectors.delete(index.vector_collection, *of, generations=one)
        await self.deps.keywords.delete(index.keyword_index, *of, generations=one)
        return False


async def is_open(sql: UnitOfWork, building: Building) -> bool:
    """Whether the set is still being built."""
    return (await active_index.read_sets(sql)).building == building
