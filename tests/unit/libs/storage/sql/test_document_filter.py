"""Which documents a filter lets through."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.dialects import mysql

from libs.storage.sql.document_filter import DocumentFilter, has_tag, matching
from libs.storage.sql.tables import documents
from tests.library import Library
from tests.servers.databases import sqlite


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with sqlite(tmp_path) as db:
        library = Library(db)
        tags = {"a": ["政策", "2026"], "b": ["政策草案", 'x"y'], "c": ["政策"]}
        for day, (name, own) in enumerate(tags.items(), start=1):
            await library.record(name, tags=own, domain="hr" if name == "c" else "")
            await library.change(name, created_at=day)
        await library.record("hidden", tags=["政策"], state="parsed", active=None)
        await library.record("gone", tags=["政策"], state="deleted")
        await library.record("foreign", tags=["政策"], tenant="other")
        yield library


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (DocumentFilter(), "abc"),
        (DocumentFilter(tags=["政策"]), "ac"),
        (DocumentFilter(tags=["政策", "2026"]), "a"),
        (DocumentFilter(tags=['x"y']), "b"),
        (DocumentFilter(tags=["策"]), ""),
        (DocumentFilter(tags=["%"]), ""),
        (DocumentFilter(document_ids=["b", "foreign", "gone", "hidden", "none"]), "b"),
        (DocumentFilter(created_after=2), "bc"),
        (DocumentFilter(created_before=2), "a"),
        (DocumentFilter(tags=["政策"], created_after=2), "c"),
    ],
)
async def test_all_that_a_filter_says_must_hold(
    library: Library, wanted: DocumentFilter, found: str
) -> None:
    async with library.db.reading() as sql:
        result = await matching(sql, "t", wanted)
    assert (result.document_ids, result.searchable) == (frozenset(found), 3)
    assert bool(wanted) == (found != "abc")


async def test_domains_narrow_a_filter(library: Library) -> None:
    async with library.db.reading() as sql:
        result = await matching(sql, "t", DocumentFilter(tags=["政策"]), ["hr"])
    assert (result.document_ids, result.searchable) == (frozenset("c"), 1)


def test_mysql_is_asked_in_its_own_words() -> None:
    statement = select(documents.c.id).where(has_tag("x"))
    said = str(statement.compile(dialect=mysql.dialect()))
    assert "JSON_CONTAINS(documents.tags, JSON_QUOTE(%s))" in said
