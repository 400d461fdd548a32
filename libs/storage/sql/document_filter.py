"""Which documents a search is to look in: by id, tag and time of upload."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Boolean, ColumnElement, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from libs.storage.sql.document_states import DocumentState
from libs.storage.sql.tables import documents
from libs.storage.sql.work import UnitOfWork


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """All that is given must hold; nothing given lets every document through."""

    tags: Sequence[str] = ()  # a document has all of them
    document_ids: Sequence[str] = ()  # it is one of them
    created_after: int | None = None  # at or after, microseconds since the epoch
    created_before: int | None = None  # before

    def __bool__(self) -> bool:
        times = (self.created_after, self.created_before)
        return bool(self.tags or self.document_ids) or any(time is not None for time in times)


@dataclass(frozen=True, slots=True)
class Matching:
    document_ids: frozenset[str]
    searchable: int  # documents of the tenant and domains that search shows, matching or not


EVERY = DocumentFilter()


async def matching(
    sql: UnitOfWork, tenant: str, wanted: DocumentFilter, domains: Sequence[str] = ()
) -> Matching:
    """The tenant's searchable documents that match."""
    shown = [
        documents.c.tenant == tenant,
        documents.c.state != DocumentState.DELETED,
        documents.c.active_generation.is_not(None),
    ]
    if domains:
        shown.append(documents.c.domain.in_(domains))
    rows = await sql.rows(select(documents.c.id).where(*shown, *_conditions(wanted)))
    searchable = await sql.scalar(select(func.count()).select_from(documents).where(*shown))
    return Matching(frozenset(row["id"] for row in rows), int(searchable))


def _conditions(wanted: DocumentFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [has_tag(tag) for tag in dict.fromkeys(wanted.tags)]
    if wanted.document_ids:
        conditions.append(documents.c.id.in_(wanted.document_ids))
    if wanted.created_after is not None:
        conditions.append(documents.c.created_at >= wanted.created_after)
    if wanted.created_before is not None:
        conditions.append(documents.c.created_at < wanted.created_before)
    return conditions


class has_tag(FunctionElement[bool]):  # noqa: N801  (reads as a function of SQL)
    """Whether a document's JSON list of tags holds this one."""

    type = Boolean()
    inherit_cache = True

    def __init__(self, tag: str) -> None:
        super().__init__(documents.c.tags, literal(tag))


@compiles(has_tag, "sqlite")
def _sqlite(element: Any, compiler: Any, **options: Any) -> str:
    tags, tag = (compiler.process(clause, **options) for clause in element.clauses)
    # A column and a bound parameter, never a value.
    return f"EXISTS (SELECT 1 FROM json_each({tags}) AS tag WHERE tag.value = {tag})"  # noqa: S608


@compiles(has_tag, "mysql")
@compiles(has_tag, "mariadb")
def _mysql(element: Any, compiler: Any, **options: Any) -> str:
    tags, tag = (compiler.process(clause, **options) for clause in element.clauses)
    return f"JSON_CONTAINS({tags}, JSON_QUOTE({tag}))"
