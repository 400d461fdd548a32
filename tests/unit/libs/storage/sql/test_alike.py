"""Documents that say the same are marked, each by itself, and only as search shows them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Executable, RowMapping, select

from libs.documents.likeness import likeness_of
from libs.storage.sql import alike, documents
from libs.storage.sql.alike import Alike
from libs.storage.sql.tables import document_likeness, document_likeness_keys
from tests.library import Library
from tests.servers.databases import sqlite

TEXT = " ".join(f"Rule {n} says that {n * 7} euros are paid." for n in range(60))
NEAR = TEXT.replace("Rule 30 says", "Rule 30, as changed in May, says")
OTHER = " ".join(f"Parcel {n} was sent to {n * 11} streets." for n in range(60))


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    async with sqlite(tmp_path) as db:
        yield await Library(db).open()


async def add(library: Library, document_id: str, text: str, *, tenant: str = "t") -> None:
    await library.record(document_id, tenant=tenant)
    async with library.db.work() as sql:
        await alike.put(sql, tenant, document_id, 1, likeness_of([text]))


async def marks(library: Library, *ids: str, tenant: str = "t") -> dict[str, Alike]:
    async with library.db.reading() as sql:
        return await alike.alike(sql, tenant, ids)


async def test_equal_and_near_texts_are_marked_both_ways(library: Library) -> None:
    for document_id, text in [("a", TEXT), ("b", TEXT.upper()), ("c", NEAR), ("d", OTHER)]:
        await add(library, document_id, text)
    found = await marks(library, "a", "b", "c", "d")
    assert set(found) == {"a", "b", "c"}
    assert (found["a"].same_text_as, found["b"].same_text_as) == (("b",), ("a",))
    assert [near.document_id for near in found["a"].near] == ["c"]
    assert [near.document_id for near in found["c"].near] == ["a", "b"]
    assert found["c"].near[0].name == "a.txt"
    assert 0.8 <= found["c"].near[0].similarity < 1
    assert await marks(library, "a") == {"a": found["a"]}


async def test_tenants_know_nothing_of_each_other(library: Library) -> None:
    await add(library, "mine", TEXT)
    await add(library, "theirs", TEXT, tenant="other")
    await add(library, "near", NEAR, tenant="other")
    assert await marks(library, "mine") == {}
    assert await marks(library, "theirs") == {}


async def test_a_deletion_hides_no_other_and_leaves_nothing(library: Library) -> None:
    for document_id in ("a", "b", "c"):
        await add(library, document_id, TEXT)
    async with library.db.work() as sql:
        await documents.tombstone(sql, "t", "a")
    found = await marks(library, "a", "b", "c")
    assert {id_: mark.same_text_as for id_, mark in found.items()} == {"b": ("c",), "c": ("b",)}
    async with library.db.work() as sql:
        await documents.purge(sql, "t", "a")
    async with library.db.reading() as sql:
        for table in (document_likeness, document_likeness_keys):
            left = await sql.rows(select(table.c.document_id).distinct())
            assert {row["document_id"] for row in left} == {"b", "c"}


async def test_only_the_generation_that_search_shows_counts(library: Library) -> None:
    await add(library, "a", TEXT)
    await add(library, "b", TEXT)
    await library.change("b", active_generation=2)  # what it is like now is not known
    assert await marks(library, "a", "b") == {}
    async with library.db.work() as sql:
        await alike.put(sql, "t", "b", 2, likeness_of([OTHER]))
    assert await marks(library, "a", "b") == {}


async def test_a_form_that_hundreds_have_filled_in_names_the_twenty_nearest(
    library: Library,
) -> None:
    for number in range(60):
        await add(library, f"d{number:02}", f"{TEXT} Signed by person number {number}.")
    found = (await marks(library, "d00"))["d00"]
    assert len(found.near) == 20
    shares = [near.similarity for near in found.near]
    assert shares == sorted(shares, reverse=True)


async def test_many_of_the_same_text_hide_none_that_is_near(library: Library) -> None:
    for n in range(45):
        await add(library, f"same{n:02}", TEXT)
    await add(library, "near", NEAR)
    found = (await marks(library, "same00"))["same00"]
    assert found.same_text_as == tuple(f"same{n:02}" for n in range(1, 21))
    assert [near.document_id for near in found.near] == ["near"]


async def test_few_rows_are_read_of_texts_that_many_share(library: Library) -> None:
    for n in range(60):
        await add(library, f"same{n:02}", TEXT)
    read = 0

    async with library.db.reading() as sql:
        rows = sql.rows

        async def counted(statement: Executable) -> list[RowMapping]:
            nonlocal read
            found = await rows(statement)
            read += len(found)
            return found

        sql.rows = counted  # type: ignore[method-assign]
        await alike.alike(sql, "t", ["same00"])
    assert read <= 1 + 21
