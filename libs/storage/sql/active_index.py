"""Which embedding model, vector collection and keyword index searches read: one row."""

from dataclasses import dataclass

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from libs.kernel import TransientError
from libs.storage.sql.tables import active_index
from libs.storage.sql.work import Database, UnitOfWork

_ROW_ID = 1


@dataclass(frozen=True, slots=True)
class ActiveIndex:
    embedding_model: str
    vector_collection: str
    keyword_index: str


async def read(sql: UnitOfWork) -> ActiveIndex:
    """Raises: TransientError while the indexer has not made it yet."""
    row = await sql.first(select(active_index).where(active_index.c.id == _ROW_ID))
    if row is None:
        raise TransientError("there is no search index yet: the indexer makes it when it starts")
    return ActiveIndex(row["embedding_model"], row["vector_collection"], row["keyword_index"])


async def read_or_make(db: Database, wanted: ActiveIndex) -> ActiveIndex:
    """The row; `wanted` becomes it when there is none. Two that start at once get the same."""
    try:
        async with db.work() as sql:
            if await sql.first(select(active_index.c.id)) is None:
                await sql.execute(
                    insert(active_index).values(
                        id=_ROW_ID,
                        embedding_model=wanted.embedding_model,
                        vector_collection=wanted.vector_collection,
                        keyword_index=wanted.keyword_index,
                    )
                )
    except IntegrityError:  # another process was faster
        pass
    async with db.reading() as sql:
        return await read(sql)
