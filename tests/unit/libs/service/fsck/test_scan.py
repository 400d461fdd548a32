"""What a comparison of the stores finds, and what it leaves alone."""

from collections.abc import Sequence

from sqlalchemy import AsyncAdaptedQueuePool, delete

from libs.kernel import new_id
from libs.service.fsck import Finding, Kind
from libs.service.fsck.examining import Examined, Examiner
from libs.service.fsck.scanning import scan
from libs.storage.sql import index_builds
from libs.storage.sql.active_index import ActiveIndex
from libs.storage.sql.tables import chunks, documents
from tests.fakes_search import FakeKeywords, FakeVectors, Rows
from tests.library import ACTIVE, Library, cut
from tests.unit.libs.service.fsck.conftest import TEXT, Platform


def brief(findings: Sequence[Finding]) -> set[tuple[Kind, str, int | None, str]]:
    return {(f.kind, f.document_id, f.generation, f.store) for f in findings}


def vector_rows(platform: Platform) -> Rows:
    assert isinstance(platform.library.vectors, FakeVectors)
    return platform.library.vectors.rows[ACTIVE.vector_collection]


async def test_stores_that_agree_are_clean(platform: Platform) -> None:
    for document_id in ("d1", "d2", "d3"):
        await platform.document(document_id, generation=2)
    assert await platform.findings() == []
    assert (platform.tally.documents, platform.tally.chunks) == (3, 12)


async def test_a_chunk_that_an_index_lost_is_found(platform: Platform) -> None:
    await platform.document()
    del vector_rows(platform)["t", "d1.1.c3"]
    (found,) = await platform.findings()
    assert brief([found]) == {(Kind.MISSING_CHUNKS, "d1", 1, "vectors")}
    assert found.detail == "1 of 4 chunks missing, as d1.1.c3"


async def test_an_index_row_that_sql_does_not_know_is_found(platform: Platform) -> None:
    await platform.document()
    await platform.library.change("d1", counts={})
    async with platform.library.db.work() as sql:
        await sql.execute(delete(chunks).where(chunks.c.id == "d1.1.c0"))
    found = await platform.findings()
    assert brief(found) == {
        (Kind.EXTRA_CHUNKS, "d1", 1, "vectors"),
        (Kind.EXTRA_CHUNKS, "d1", 1, "keywords"),
    }


async def test_counts_that_differ_from_the_chunks_are_found(platform: Platform) -> None:
    await platform.document()
    await platform.library.change("d1", counts={"chunks": 5, "parents": 2})
    (found,) = await platform.findings()
    assert found.kind is Kind.WRONG_COUNT
    assert found.detail == "the document says 5 chunks, SQL has 4"


async def test_files_that_are_gone_are_named(platform: Platform) -> None:
    await platform.document()
    del platform.objects.objects["t/d1/original"]
    del platform.objects.objects["t/d1/1/text.txt"]
    found = await platform.findings()
    assert {f.detail for f in found} == {"original is gone", "1/text.txt is gone"}


async def test_an_indexed_document_that_search_does_not_show_is_found(platform: Platform) -> None:
    await platform.document()
    await platform.library.change("d1", active_generation=None)
    assert Kind.NOT_SHOWN in {finding.kind for finding in await platform.findings()}


async def test_what_older_generations_left_is_found_in_every_store(platform: Platform) -> None:
    await platform.document(generation=3)
    await platform.leftover("d1", 2)
    await platform.facts("d1", 2)
    stores = ("vectors", "keywords", "sql", "graph", "objects")
    expected = {(Kind.LEFTOVER_GENERATION, "d1", 2, store) for store in stores}
    assert brief(await platform.findings()) == expected


async def test_what_a_vanished_document_left_is_found_in_every_store(platform: Platform) -> None:
    await platform.leftover("gone", 1)
    await platform.facts("gone", 1)
    await platform.library.record("living", state="uploaded", active=None)
    await platform.objects.put("t/living/original", b"x")
    stores = ("vectors", "keywords", "sql", "graph", "objects")
    expected = {(Kind.LEFTOVER_DOCUMENT, "gone", None, store) for store in stores}
    assert brief(await platform.findings()) == expected


async def test_a_new_generation_in_work_is_no_fault_beside_the_shown_one(
    platform: Platform,
) -> None:
    await platform.document()
    await platform.library.change("d1", state="chunked", generation=2)
    await platform.leftover("d1", 2)
    assert await platform.findings() == []
    assert platform.tally.in_progress == 1


async def test_the_shown_generation_must_be_whole_while_a_new_one_is_in_work(
    platform: Platform,
) -> None:
    await platform.document()
    await platform.library.change("d1", state="parsed", generation=2)
    del vector_rows(platform)["t", "d1.1.c0"]
    assert brief(await platform.findings()) == {(Kind.MISSING_CHUNKS, "d1", 1, "vectors")}


async def test_a_failed_generation_keeps_its_work_and_a_cancelled_one_does_not(
    platform: Platform,
) -> None:
    await platform.leftover("d1", 1)
    await platform.objects.put("t/d1/original", b"x")
    await platform.library.record("d1", state="failed", active=None)
    assert await platform.findings() == []
    await platform.library.change("d1", state="cancelled")
    stores = ("vectors", "keywords", "sql")
    expected = {(Kind.LEFTOVER_GENERATION, "d1", 1, store) for store in stores}
    assert brief(await platform.findings()) == expected


async def test_a_tombstone_is_a_deletion_under_way(platform: Platform) -> None:
    await platform.document()
    await platform.library.change("d1", state="deleted", active_generation=None)
    assert await platform.findings() == []
    assert platform.tally.in_progress == 1


async def test_what_changed_a_moment_ago_is_in_progress(platform: Platform) -> None:
    await platform.document()
    vector_rows(platform).clear()
    await platform.objects.put(f"t/{new_id()}/original", b"an upload that has no row yet")
    assert await platform.findings(grace_s=60.0) == []
    assert platform.tally.in_progress == 2
    await platform.library.change("d1", updated_at=1)
    assert brief(await platform.findings(grace_s=60.0)) == {
        (Kind.MISSING_CHUNKS, "d1", 1, "vectors")
    }


async def test_what_heals_between_two_looks_is_not_found(platform: Platform) -> None:
    await platform.document()
    healed = HealingKeywords(platform.library.keywords)  # type: ignore[arg-type]
    platform.library.keywords = healed
    assert await platform.findings() == []
    assert healed.looks == 2


async def test_one_tenant_can_be_looked_at_alone(platform: Platform) -> None:
    await platform.leftover("gone", 1)
    assert await platform.findings(tenant="other") == []
    assert await platform.findings(tenant="t") != []


async def test_a_large_library_is_looked_through_page_by_page(platform: Platform) -> None:
    for number in range(120):
        await platform.library.record(f"d{number:03}", state="uploaded", active=None)
        await platform.objects.put(f"t/d{number:03}/original", b"x")
    assert await platform.findings() == []
    assert platform.tally.documents == 120
    async with platform.library.db.work() as sql:
        await sql.execute(delete(documents))
    assert len(await platform.findings()) == 120


class HealingKeywords(FakeKeywords):
    """Answers the first look at a document as if nothing had been written yet."""

    def __init__(self, whole: FakeKeywords) -> None:
        super().__init__(whole.rows)
        self.looks = 0

    async def entries(self, name, tenant, document_id=None):  # type: ignore[no-untyped-def]
        if document_id is not None:
            self.looks += 1
        if document_id is None or self.looks > 1:
            async for page in super().entries(name, tenant, document_id):
                yield page


async def building(platform: Platform) -> ActiveIndex:
    """An empty set beside the active one."""
    new, library = ActiveIndex(ACTIVE.embedding_model, "new-v", "new-k"), platform.library
    await library.vectors.ensure(new.vector_collection)
    await library.keywords.ensure(new.keyword_index)
    async with library.db.work() as sql:
        build = await index_builds.start(sql, rechunk=False)
        await index_builds.take_up(sql, build["id"], new, analyser=1)
    return new


async def mark(platform: Platform, document_id: str, generation: int) -> None:
    async with platform.library.db.work() as sql:
        build = await index_builds.current(sql)
        assert build is not None
        await index_builds.mark(sql, build["id"], document_id, generation)


async def test_a_set_that_is_being_built_may_be_short_but_not_where_it_is_said_to_be_whole(
    platform: Platform,
) -> None:
    await platform.document()
    await building(platform)
    assert await platform.findings() == []
    await mark(platform, "d1", 1)
    assert brief(await platform.findings()) == {
        (Kind.MISSING_CHUNKS, "d1", 1, "new vectors"),
        (Kind.MISSING_CHUNKS, "d1", 1, "new keywords"),
    }


async def test_what_is_left_in_a_set_that_is_being_built_is_found(platform: Platform) -> None:
    await platform.document(generation=2)
    new = await building(platform)
    library = Library(platform.library.db, active=new)
    library.vectors, library.keywords = platform.library.vectors, platform.library.keywords
    for document_id, generation in (("d1", 1), ("gone", 1)):
        _, children = cut(TEXT, document_id, generation)
        await library.index(document_id, children, generation=generation)
    assert brief(await platform.findings()) == {
        (Kind.LEFTOVER_GENERATION, "d1", 1, "new vectors"),
        (Kind.LEFTOVER_GENERATION, "d1", 1, "new keywords"),
        (Kind.LEFTOVER_DOCUMENT, "gone", None, "new vectors"),
        (Kind.LEFTOVER_DOCUMENT, "gone", None, "new keywords"),
    }


async def test_a_set_that_is_over_and_still_there_is_found(platform: Platform) -> None:
    await building(platform)
    async with platform.library.db.work() as sql:
        build = await index_builds.cancel(sql)
    assert await platform.findings() == []  # about to be removed
    async with platform.library.db.work() as sql:
        await index_builds.close(sql, build["id"])
    found = await platform.findings()
    assert {(f.kind, f.store, f.detail.split()[0]) for f in found} == {
        (Kind.LEFTOVER_INDEX, "vectors", "new-v"),
        (Kind.LEFTOVER_INDEX, "keywords", "new-k"),
    }
    assert await platform.repaired() == ["the indexer removes it when it starts, and every hour"]


async def test_facts_alone_of_a_vanished_document_are_found(platform: Platform) -> None:
    await platform.facts("gone", 1)
    assert brief(await platform.findings()) == {(Kind.LEFTOVER_DOCUMENT, "gone", None, "graph")}


async def test_no_transaction_is_open_while_strangers_are_looked_at(platform: Platform) -> None:
    await platform.facts("gone", 1)
    pool = platform.library.db.engine.pool
    assert isinstance(pool, AsyncAdaptedQueuePool)
    connections = pool.checkedout
    in_use: list[int] = []

    class Watched(Examiner):
        async def examine(self, tenant: str, document_id: str) -> Examined:
            in_use.append(connections())
            return await super().examine(tenant, document_id)

    examiner = Watched(platform.stores, grace_s=0.0, settle_s=0.0, upload_grace_s=0.0)
    seen = [one async for one in scan(platform.stores, examiner, platform.tally)]
    assert [finding.document_id for one in seen for finding in one.findings] == ["gone"]
    assert in_use == [0]
