"""Building a new set of indexes beside the active one. SQL says which, how far, and what is over.

building --switch--> switched --the old set is gone--> done
building --cancel--> cancelling --the new set is gone--> cancelled
"""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, RowMapping, and_, delete, func, insert, or_, select, update

from libs.kernel import ConflictError, NotFoundError, new_id, now_us
from libs.storage.sql import active_index
from libs.storage.sql.active_index import BUILDING, OPEN, ActiveIndex
from libs.storage.sql.tables import active_index as active_table
from libs.storage.sql.tables import documents, index_build_documents, index_builds
from libs.storage.sql.work import UnitOfWork

ASKED_ANEW = 0  # the `generation` of a document that was asked to be cut anew for the build


class State(StrEnum):
    BUILDING = BUILDING
    SWITCHED = "switched"  # it is the active set; the old one is still there for late readers
    CANCELLING = "cancelling"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Progress:
    """Documents that search shows, and how many of them are whole in the new set."""

    total: int
    done: int


async def start(sql: UnitOfWork, *, rechunk: bool) -> RowMapping:
    """Ask for a new set; the indexer takes it up. Raises: ConflictError while one is not over."""
    row = await current(sql)
    if row is not None:
        if row["state"] != State.BUILDING:
            raise ConflictError(f"the last re-index is {row['state']}: try again in a minute")
        raise ConflictError(
            "a re-index is under way: follow it with `sluice reindex --status`, or end it with "
            "`sluice reindex --cancel`"
        )
    build_id = new_id()
    await sql.execute(
        insert(index_builds).values(
            id=build_id,
            slot=OPEN,
            state=State.BUILDING,
            rechunk=rechunk,
            created_at=now_us(),
        )
    )
    return await _load(sql, build_id)


async def current(sql: UnitOfWork) -> RowMapping | None:
    """The build that is not over; None: there is none."""
    return await sql.first(select(index_builds).where(index_builds.c.slot == OPEN))


async def latest(sql: UnitOfWork) -> RowMapping | None:
    """The build that is not over, or the last that was; None: there never was one."""
    return await sql.first(select(index_builds).order_by(index_builds.c.id.desc()).limit(1))


async def take_up(sql: UnitOfWork, build_id: str, index: ActiveIndex, analyser: int) -> bool:
    """Name the build's set, before anything of it is made; False: it has its names, or is over."""
    return await sql.compare_and_set(
        update(index_builds)
        .where(_is(build_id, State.BUILDING), index_builds.c.vector_collection.is_(None))
        .values(
            embedding_model=index.embedding_model,
            vector_collection=index.vector_collection,
            keyword_index=index.keyword_index,
            analyser=analyser,
        )
    )


async def cancel(sql: UnitOfWork) -> RowMapping:
    """End the build under way; the active set stays. Repeating it changes nothing.

    Raises: NotFoundError: there is none; ConflictError: the new set is the active one already.
    """
    await active_index.find(sql, lock=True)
    row = await current(sql)
    if row is None:
        raise NotFoundError("no re-index is under way")
    if row["state"] == State.SWITCHED:
        raise ConflictError("the new index is in use already: there is nothing to cancel")
    await sql.execute(
        update(index_builds).where(_is(row["id"], State.BUILDING)).values(state=State.CANCELLING)
    )
    return await _load(sql, row["id"])


async def hold_up(sql: UnitOfWork, build_id: str, problem: str | None) -> None:
    """Say what the build waits for now; None: it goes on."""
    of = index_builds.c.id == build_id
    await sql.execute(update(index_builds).where(of).values(problem=problem))


async def missing(
    sql: UnitOfWork, build_id: str, *, after: str = "", limit: int = 100
) -> list[RowMapping]:
    """Documents whose shown generation is not whole in the new set, by ascending id.

    Each is the document's row, with `asked_anew`: whether it was asked to be cut anew.
    """
    return await sql.rows(
        select(documents, (index_build_documents.c.generation == ASKED_ANEW).label("asked_anew"))
        .select_from(documents.outerjoin(index_build_documents, _mark_of(build_id)))
        .where(_is_missing(), documents.c.id > after)
        .order_by(documents.c.id)
        .limit(limit)
    )


async def progress(sql: UnitOfWork, build_id: str) -> Progress:
    shown = documents.c.active_generation.is_not(None)
    total = int(await sql.scalar(select(func.count()).select_from(documents).where(shown)))
    marked = documents.outerjoin(index_build_documents, _mark_of(build_id))
    left = await sql.scalar(select(func.count()).select_from(marked).where(_is_missing()))
    return Progress(total, total - int(left))


async def mark(sql: UnitOfWork, build_id: str, document_id: str, generation: int) -> None:
    """This generation is whole in the new set (or `ASKED_ANEW`), whatever was said before.

    The caller holds the lock of the active index.
    """
    await sql.execute(
        delete(index_build_documents).where(
            index_build_documents.c.build_id == build_id,
            index_build_documents.c.document_id == document_id,
        )
    )
    await sql.execute(
        insert(index_build_documents).values(
            build_id=build_id, document_id=document_id, generation=generation
        )
    )


async def marked(sql: UnitOfWork, build_id: str, document_id: str) -> int | None:
    """The generation that is whole in the new set."""
    found = await sql.scalar(
        select(index_build_documents.c.generation).where(
            index_build_documents.c.build_id == build_id,
            index_build_documents.c.document_id == document_id,
        )
    )
    return None if found in {None, ASKED_ANEW} else int(found)


async def switch(sql: UnitOfWork, build_id: str) -> bool:
    """Make the new set the active one, if it holds all that search shows; else False."""
    old = await active_index.read(sql, lock=True)
    row = await sql.first(select(index_builds).where(_is(build_id, State.BUILDING)))
    if row is None or row["vector_collection"] is None or await missing(sql, build_id, limit=1):
        return False
    await sql.execute(
        update(active_table).values(
            embedding_model=row["embedding_model"],
            vector_collection=row["vector_collection"],
            keyword_index=row["keyword_index"],
            analyser=row["analyser"],
        )
    )
    await sql.execute(
        update(index_builds)
        .where(index_builds.c.id == build_id)
        .values(
            state=State.SWITCHED,
            switched_at=now_us(),
            problem=None,
            old_vector_collection=old.vector_collection,
            old_keyword_index=old.keyword_index,
        )
    )
    await _forget_marks(sql, build_id)
    return True


async def close(sql: UnitOfWork, build_id: str) -> None:
    """What the build left behind is gone: the next one may start."""
    for state, to in ((State.SWITCHED, State.DONE), (State.CANCELLING, State.CANCELLED)):
        await sql.execute(
            update(index_builds)
            .where(_is(build_id, state))
            .values(state=to, slot=None, ended_at=now_us(), problem=None)
        )
    await _forget_marks(sql, build_id)


async def over(sql: UnitOfWork) -> list[tuple[str, str]]:
    """(vector collection, keyword index) of every set that must not be there any more.

    None of the open build is: it takes its own away itself.
    """
    active = await active_index.read(sql)
    kept = {(active.vector_collection, active.keyword_index)}
    past: list[tuple[str, str]] = []
    for row in await sql.rows(select(index_builds).order_by(index_builds.c.id)):
        names = [*_names(row, "old_"), *_names(row, "")]
        if row["slot"] is None:
            past += names
        else:
            kept.update(names)
    return [names for names in dict.fromkeys(past) if names not in kept]


def _names(row: RowMapping, prefix: str) -> list[tuple[str, str]]:
    names = row[f"{prefix}vector_collection"], row[f"{prefix}keyword_index"]
    return [] if names[0] is None else [names]


async def _load(sql: UnitOfWork, build_id: str) -> RowMapping:
    row = await sql.first(select(index_builds).where(index_builds.c.id == build_id))
    assert row is not None  # noqa: S101 - builds are never removed
    return row


async def _forget_marks(sql: UnitOfWork, build_id: str) -> None:
    await sql.execute(
        delete(index_build_documents).where(index_build_documents.c.build_id == build_id)
    )


def _is(build_id: str, state: State) -> ColumnElement[bool]:
    return and_(index_builds.c.id == build_id, index_builds.c.state == state)


def _mark_of(build_id: str) -> ColumnElement[bool]:
    return and_(
        index_build_documents.c.document_id == documents.c.id,
        index_build_documents.c.build_id == build_id,
    )


def _is_missing() -> ColumnElement[bool]:
    return and_(
        documents.c.active_generation.is_not(None),
        or_(
            index_build_documents.c.generation.is_(None),
            index_build_documents.c.generation != documents.c.active_generation,
        ),
    )
