"""Building a new set of indexes beside the live one, and making it the live one when it is whole.

Everything that must survive is in SQL (`index_builds`): any process may end at any point, and the
next one goes on from there.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog
from sqlalchemy import RowMapping

from libs.documents.analysis import VERSION as ANALYSER
from libs.eventbus.waiting import until_any
from libs.kernel import TransientError, now_us
from libs.storage.sql import active_index, index_builds
from libs.storage.sql.active_index import ActiveIndex, Building
from libs.storage.sql.index_builds import State
from services.indexer.bringing import Bringing, is_open
from services.indexer.deps import Deps
from services.indexer.startup import probe, wanted_index

log = structlog.get_logger(__name__)

_AT_ONCE = 2  # documents: while one is being written, another is embedded


@dataclass(frozen=True, slots=True)
class RebuildPolicy:
    """How often SQL is asked, and how long the old set outlives the switch for late readers."""

    look_every_s: float = 1.0
    keep_old_s: float = 30.0


class Rebuilder:
    """Does what `index_builds` asks for, as long as nobody waits for the embedder.

    Args:
        flush: Moves what was written to a vector collection into its index.
        report: Told what people must do, as long as they must; then None.
    """

    def __init__(
        self,
        deps: Deps,
        *,
        flush: Callable[[str], Awaitable[None]],
        report: Callable[[str | None], None],
        policy: RebuildPolicy | None = None,
    ) -> None:
        self._deps = deps
        self._flush = flush
        self._report = report
        self._policy = policy or RebuildPolicy()
        self._made: str | None = None  # the build whose indexes this process has made sure of

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; faults are told in SQL and tried again."""
        await until_any(self._forever(), stop.wait())

    async def step(self) -> bool:
        """Bring the open build as far as it goes now; True: there is more to do at once.

        Raises: TransientError.
        """
        async with self._deps.db.reading() as sql:
            active = await active_index.read(sql)
            build = await index_builds.current(sql)
        self._tell(active)
        if build is None:
            return False
        match build["state"]:
            case State.BUILDING:
                return await self._build(build)
            case State.SWITCHED:
                until_us = build["switched_at"] + int(self._policy.keep_old_s * 1e6)
                if now_us() >= until_us:
                    await self._drop(build["old_vector_collection"], build["old_keyword_index"])
                    await self._close(build)
            case State.CANCELLING:
                if build["vector_collection"] is not None:
                    await self._drop(build["vector_collection"], build["keyword_index"])
                await self._close(build)
        return False

    async def sweep(self) -> int:
        """Drop whatever is left of sets that are over; returns how many. Raises: TransientError."""
        async with self._deps.db.reading() as sql:
            over = await index_builds.over(sql)
        dropped = 0
        for vectors, keywords in over:
            there = await asyncio.gather(
                self._deps.vectors.exists(vectors), self._deps.keywords.exists(keywords)
            )
            if any(there):
                await self._drop(vectors, keywords)
                dropped += 1
        return dropped

    async def _forever(self) -> None:
        swept = False
        while True:
            try:
                if not swept:
                    await self.sweep()
                    swept = True
                more = await self.step()
            except Exception as exc:
                known = isinstance(exc, TransientError)
                log.warning("reindex_held_up", error=str(exc), exc_info=None if known else exc)
                with suppress(TransientError):
                    await self._hold_up(str(exc) or type(exc).__name__)
                more = False
            if not more:
                await asyncio.sleep(self._policy.look_every_s)

    def _tell(self, active: ActiveIndex) -> None:
        ours = active.embedding_model == self._deps.embedder.name
        self._report(None if ours else f"index of {active.embedding_model}: run `sluice reindex`")

    async def _build(self, build: RowMapping) -> bool:
        if build["vector_collection"] is None:
            await self._deps.embedder.ready()
            async with self._deps.db.work() as sql:
                index = wanted_index(self._deps.embedder, build["id"])
                await index_builds.take_up(sql, build["id"], index, ANALYSER)
            return True
        names = build["embedding_model"], build["vector_collection"], build["keyword_index"]
        if names[0] != self._deps.embedder.name:
            raise TransientError(
                f"it was begun with {names[0]}, and {self._deps.embedder.name} is set up: "
                "`sluice reindex --cancel`, then begin anew"
            )
        building = Building(build["id"], ActiveIndex(*names))
        await self._make(building)
        moved = await self._bring_missing(building, rechunk=build["rechunk"])
        return moved or await self._switch(building)

    async def _make(self, building: Building) -> None:
        if self._made == building.build_id:
            return
        index, deps = building.index, self._deps
        await deps.vectors.ensure(index.vector_collection)
        await deps.keywords.ensure(index.keyword_index)
        await probe(index, deps.embedder_of(index.embedding_model), deps.vectors, deps.keywords)
        self._made = building.build_id

    async def _bring_missing(self, building: Building, *, rechunk: bool) -> bool:
        """One pass over what is not whole in the new set; True: some of it was brought there."""
        after, problem, moved = "", None, False
        bringing = Bringing(self._deps, building, rechunk=rechunk)
        while page := await bringing.missing(after):
            after = page[-1]["id"]
            for at in range(0, len(page), _AT_ONCE):
                some = page[at : at + _AT_ONCE]
                outcomes = await asyncio.gather(
                    *(bringing.bring(row) for row in some), return_exceptions=True
                )
                for row, outcome in zip(some, outcomes, strict=True):
                    if not isinstance(outcome, BaseException):
                        moved = moved or outcome
                    elif not isinstance(outcome, Exception):
                        raise outcome
                    else:
                        problem = f"document {row['id']}: {outcome}"
                        log.warning("reindex_document_failed", document=row["id"], exc_info=outcome)
        await self._hold_up(problem)
        return moved

    async def _switch(self, building: Building) -> bool:
        async with self._deps.db.reading() as sql:
            if not await is_open(sql, building):
                return True  # cancelled
            if await index_builds.missing(sql, building.build_id, limit=1):
                return False
        await self._flush(building.index.vector_collection)
        index, deps = building.index, self._deps
        await probe(index, deps.embedder_of(index.embedding_model), deps.vectors, deps.keywords)
        async with deps.db.work() as sql:
            switched = await index_builds.switch(sql, building.build_id)
        if switched:
            log.info("reindex_switched", vector_collection=index.vector_collection)
        return not switched

    async def _drop(self, vector_collection: str, keyword_index: str) -> None:
        await self._deps.vectors.drop(vector_collection)
        await self._deps.keywords.drop(keyword_index)
        log.info("index_dropped", vectors=vector_collection, keywords=keyword_index)

    async def _close(self, build: RowMapping) -> None:
        async with self._deps.db.work() as sql:
            await index_builds.close(sql, build["id"])

    async def _hold_up(self, problem: str | None) -> None:
        async with self._deps.db.work() as sql:
            build = await index_builds.current(sql)
            if build is not None and build["problem"] != problem:
                await index_builds.hold_up(sql, build["id"], problem)
