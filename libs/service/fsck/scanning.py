"""Everything there is, document by document, in bounded memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Protocol

from libs.service.fsck.examining import Examined, Examiner
from libs.service.fsck.findings import Finding, Kind, Tally
from libs.service.fsck.stores import Holdings, StoredIndex, Stores
from libs.storage.sql import Database, UnitOfWork, index_builds, pages

PAGE = 100
AT_ONCE = 8

Owner = tuple[str, str]  # tenant, document id


class OwnersPage(Protocol):
    """Owners in SQL by ascending document id, from `after` (exclusive) on."""

    def __call__(
        self, sql: UnitOfWork, *, tenant: str | None, after: str, limit: int
    ) -> Awaitable[list[Owner]]: ...


async def scan(
    stores: Stores, examiner: Examiner, tally: Tally, *, tenant: str | None = None
) -> AsyncIterator[Examined]:
    """Every document that something is wrong with; `tally` counts as it goes.

    First each row of SQL is compared with the stores, then each store is looked through for what
    has no row. A document is in memory while it is looked at, a store's listing page by page.

    Args:
        tenant: Look at this one alone.

    Raises: TransientError when a store is away.
    """
    async for owners in _in_pages(stores.db, pages.owners, tenant):
        for seen in await _examined(examiner, owners):
            tally.documents += 1
            tally.chunks += len(seen.holdings.children)
            if _counted(seen, tally):
                yield seen
    looked_at: set[Owner] = set()
    async for owners in _strangers(stores, tenant):
        new = [owner for owner in owners if owner not in looked_at]
        looked_at.update(new)
        for seen in await _examined(examiner, new):
            if _counted(seen, tally):
                yield seen
    if tenant is None:
        seen = Examined(Holdings(None), await _indexes_that_are_over(stores))
        if _counted(seen, tally):
            yield seen


async def _indexes_that_are_over(stores: Stores) -> list[Finding]:
    async with stores.db.reading() as sql:
        over = await index_builds.over(sql)
    found = []
    for vectors, keywords in over:
        for store, index in (
            ("vectors", StoredIndex(stores.vectors, vectors)),
            ("keywords", StoredIndex(stores.keywords, keywords)),
        ):
            if await index.exists():
                detail = f"{index.name} is of a re-index that is over"
                found.append(Finding(Kind.LEFTOVER_INDEX, "", "", None, store, detail))
    return found


def _counted(seen: Examined, tally: Tally) -> bool:
    tally.in_progress += seen.in_progress
    tally.findings += len(seen.findings)
    return bool(seen.findings)


async def _examined(examiner: Examiner, owners: Sequence[Owner]) -> list[Examined]:
    found: list[Examined] = []
    for at in range(0, len(owners), AT_ONCE):
        found += await asyncio.gather(*(examiner.examine(*o) for o in owners[at : at + AT_ONCE]))
    return found


async def _in_pages(
    db: Database, page_of: OwnersPage, tenant: str | None
) -> AsyncIterator[list[Owner]]:
    after = ""
    while True:
        async with db.reading() as sql:
            page = await page_of(sql, tenant=tenant, after=after, limit=PAGE)
        if not page:
            return
        yield page
        after = page[-1][1]


async def _strangers(stores: Stores, tenant: str | None) -> AsyncIterator[list[Owner]]:
    """Owners of stored things that have no row, more than once where they have much."""
    async for found in _stored(stores, tenant):
        for name in sorted({name for name, _ in found}):
            ids = sorted(document_id for owner, document_id in found if owner == name)
            for at in range(0, len(ids), PAGE):
                some = ids[at : at + PAGE]
                # Closed before they are looked at, which takes calls of stores, and pauses.
                async with stores.db.reading() as sql:
                    known = await pages.documents_by_id(sql, name, some)
                yield [(name, unknown) for unknown in some if unknown not in known]


async def _stored(stores: Stores, tenant: str | None) -> AsyncIterator[set[Owner]]:
    async with stores.db.reading() as sql:
        tenants = [tenant] if tenant else await pages.tenants(sql)
    for name in tenants:
        for index in (await stores.indexes()).values():
            async for entries in index.entries(name):
                yield {(name, entry.document_id) for entry in entries}
    async for keys in stores.objects.pages(f"{tenant}/" if tenant else ""):
        parts = [key.split("/") for key in keys]
        yield {(part[0], part[1]) for part in parts if len(part) > 2}
    for page_of in (pages.chunk_owners, pages.graph_owners):
        async for owners in _in_pages(stores.db, page_of, tenant):
            yield set(owners)
