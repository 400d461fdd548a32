"""Rows that no search can show are found and removed; everything else stays."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from libs.kernel import now_us
from libs.storage.sql import api_keys
from services.indexer.deps import Deps
from services.indexer.stale_rows import sweep
from tests.fakes import FakeObjectStore
from tests.fakes_search import FakeEmbedder, FakeKeywords, FakeVectors
from tests.library import Library, cut
from tests.servers.databases import sqlite

TEXT = "one line\nanother line"
NEVER, ALWAYS = 0, 2**62


@dataclass
class World:
    library: Library
    vectors: FakeVectors
    keywords: FakeKeywords
    deps: Deps

    async def rows(self, document_id: str, *, generation: int = 1, tenant: str = "t") -> None:
        """Rows of a generation, as a writer leaves them."""
        _, children = cut(TEXT, document_id, generation)
        await self.library.index(document_id, children, tenant=tenant, generation=generation)

    def left(self, tenant: str = "t") -> set[tuple[str, int]]:
        """What both indexes hold; they must agree."""
        kinds = [
            {(row.document_id, row.generation) for row in rows.values() if row.tenant == tenant}
            for rows in (self.vectors.rows["vectors"], self.keywords.rows["keywords"])
        ]
        assert kinds[0] == kinds[1]
        return kinds[0]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with sqlite(tmp_path) as db:
        vectors, keywords, embedder = FakeVectors(), FakeKeywords(), FakeEmbedder()
        library = await Library(db, embedder, vectors, keywords).open()
        async with db.work() as sql:
            await api_keys.create(sql, "t", role="member", name="test")
        deps = Deps(db, FakeObjectStore(), embedder, vectors, keywords)
        yield World(library, vectors, keywords, deps)


async def test_rows_of_a_document_that_is_gone_are_removed(world: World) -> None:
    await world.rows("purged")
    assert await sweep(world.deps, failed_before_us=NEVER) == 2
    assert world.left() == set()
    assert await sweep(world.deps, failed_before_us=ALWAYS) == 0


async def test_a_tenant_without_keys_or_with_none_left_is_swept_too(world: World) -> None:
    await world.library.record("kept", tenant="old")
    await world.rows("kept", tenant="old")
    await world.rows("purged", tenant="old")
    await sweep(world.deps, failed_before_us=NEVER)
    assert world.left("old") == {("kept", 1)}


@pytest.mark.parametrize(
    ("state", "generation", "active", "kept"),
    [
        ("indexed", 3, 3, {3}),
        ("uploaded", 3, 2, {2, 3}),
        ("chunked", 3, None, {3}),
        ("cancelled", 3, 2, {2}),
        ("cancelled", 3, None, set()),
        ("failed", 3, 2, {2, 3}),
        ("deleted", 3, None, set()),
    ],
)
async def test_what_is_shown_or_may_be_shown_stays(
    world: World, state: str, generation: int, active: int | None, kept: set[int]
) -> None:
    await world.library.record("d", state=state, generation=generation, active=active)
    for each in (1, 2, 3):
        await world.rows("d", generation=each)
    await sweep(world.deps, failed_before_us=NEVER)
    assert world.left() == {("d", each) for each in kept}


async def test_what_failed_long_ago_is_removed(world: World) -> None:
    await world.library.record("d", state="failed", generation=2, active=1)
    await world.rows("d", generation=1)
    await world.rows("d", generation=2)
    await sweep(world.deps, failed_before_us=now_us() + 1_000_000)
    assert world.left() == {("d", 1)}
