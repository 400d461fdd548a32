"""Which embedding model, vector collection and keyword index searches read: one row."""

from dataclasses import dataclass

from sqlalchemy import insert, select

from libs.kernel import ConflictError, TransientError
from libs.storage.sql.tables import active_index, index_builds
from libs.storage.sql.work import Database, UnitOfWork

_ROW_ID = 1
OPEN = 1  # in the `slot` of the one build that is not over
BUILDING = "building"


@dataclass(frozen=True, slots=True)
class ActiveIndex:
    """A set of indexes that belong together."""

    embedding_model: str
    vector_collection: str
    keyword_index: str


@dataclass(frozen=True, slots=True)
class Building:
    """The set that is being built beside the active one."""

    build_id: str
    index: ActiveIndex


@dataclass(frozen=True, slots=True)
class IndexSets:
    """What writers write to, and what deletions delete from."""

    active: ActiveIndex
    building: Building | None = None

    @property
    def every(self) -> tuple[ActiveIndex, ...]:
        return (self.active,) if self.building is None else (self.active, self.building.index)


async def read(sql: UnitOfWork, *, lock: bool = False) -> ActiveIndex:
    """Raises: TransientError while the indexer has not made it yet.

    `lock` holds the row until the unit ends: no other set becomes the active one meanwhile, and
    whoever announces that a document is whole in a set takes it first.
    """
    active = await find(sql, lock=lock)
    if active is None:
        raise TransientError("there is no search index yet: the indexer makes it when it starts")
    return active


async def find(sql: UnitOfWork, *, lock: bool = False) -> ActiveIndex | None:
    """`read`; None while the indexer has not made it yet."""
    statement = select(active_index).where(active_index.c.id == _ROW_ID)
    row = await sql.first(statement.with_for_update() if lock else statement)
    if row is None:
        return None
    return ActiveIndex(row["embedding_model"], row["vector_collection"], row["keyword_index"])


async def read_sets(sql: UnitOfWork, *, lock: bool = False) -> IndexSets:
    """The active set and the one being built. Raises and locks as `read`."""
    active = await read(sql, lock=lock)
    row = await sql.first(
        select(index_builds).where(
            index_builds.c.slot == OPEN,
            index_builds.c.state == BUILDING,
            index_builds.c.vector_collection.is_not(None),
        )
    )
    if row is None:
        return IndexSets(active)
    index = ActiveIndex(row["embedding_model"], row["vector_collection"], row["keyword_index"])
    return IndexSets(active, Building(row["id"], index))


async def analyser(sql: UnitOfWork) -> int | None:
    """The version of the analysis that made the active set's terms; None: there is no set yet."""
    found = await sql.scalar(select(active_index.c.analyser))
    return None if found is None else int(found)


async def read_or_make(db: Database, wanted: ActiveIndex, *, analyser: int) -> ActiveIndex:
    """The row; `wanted` becomes it when there is none. Two that start at once get the same.

    Args:
        analyser: The version of the analysis that makes its terms.
    """
    try:
        async with db.work() as sql:
            if await sql.first(select(active_index.c.id)) is None:
                await sql.execute(
                    insert(active_index).values(
                        id=_ROW_ID,
                        embedding_model=wanted.embedding_model,
                        vector_collection=wanted.vector_collection,
                        keyword_index=wanted.keyword_index,
                        analyser=analyser,
                    )
                )
    except ConflictError:  # another process was faster
        pass
    async with db.reading() as sql:
        return await read(sql)
