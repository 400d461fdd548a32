"""What becomes of documents on the real broker: each comes to its own end, whatever others do."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from libs.contracts import DocumentChunked, DocumentDeleted, DocumentParsed, DocumentUploaded
from libs.eventbus import KafkaConnection, RetryPolicy
from libs.eventbus.backlog import KafkaBacklogs
from libs.eventbus.preparation import prepare_broker
from libs.kernel import PermanentError, TransientError
from libs.observability import tracing
from libs.service.settings import PlatformSettings
from libs.storage.sql import documents
from libs.storage.sql.document_states import FINAL
from libs.storage.sql.tables import dead_letters, outbox
from services.gateway.lag import LagReader
from services.gateway.stuck import StuckReader, of_document
from tests.broker import restartable_broker
from tests.integration.services.pipeline import QUICK, TENANT, Pipeline, pipeline
from tests.library import ACTIVE
from tests.waiting import until

pytestmark = pytest.mark.integration

CHUNKED = "documents.chunked.v1"


@pytest.fixture
async def work(tmp_path: Path) -> AsyncIterator[Pipeline]:
    async with restartable_broker() as broker:
        settings = PlatformSettings(
            home=tmp_path,
            kafka_bootstrap=broker.bootstrap,
            kafka_session_timeout_s=2.0,
            kafka_fetch_wait_s=0.1,
        )
        async with pipeline(settings, broker) as made:
            yield made


def names(kind: str, count: int) -> list[str]:
    return [f"{kind}-{n}" for n in range(count)]


@pytest.mark.parametrize(("stage", "bulk"), [("parse", 500), ("index", 60)])
async def test_an_urgent_document_does_not_wait_behind_a_bulk_batch(
    work: Pipeline, stage: str, bulk: int
) -> None:
    busy = {"parse": work.parser.fates, "index": work.embedder.fates}[stage]
    busy.held["bulk"] = asyncio.Event()
    await work.start()
    await work.upload(*names("bulk", bulk))
    await until(lambda: len(busy.met) >= QUICK.flow.max_in_flight, within_s=60)
    (urgent,) = await work.upload("now-0", priority="urgent")
    await work.until_states(indexed=1)
    assert (await work.rows())[urgent]["state"] == "indexed"
    assert len(await work.rows()) == bulk + 1


async def test_a_mixed_batch_adds_up_at_every_moment_and_in_the_end(work: Pipeline) -> None:
    parser, embedder = work.parser.fates, work.embedder.fates
    parser.errors["corrupt"] = PermanentError("corrupt", "It cannot be read: upload it anew.")
    parser.errors["bug"] = ZeroDivisionError("a bug")
    embedder.errors["away"] = TransientError("the model is away")
    embedder.once["later"] = TransientError("the model is busy")
    parser.held = {kind: asyncio.Event() for kind in ("cancelled", "deleted")}
    counts = {"good": 70, "corrupt": 10, "bug": 5, "away": 5, "later": 10}
    counts |= {"cancelled": 5, "deleted": 5}
    await work.start()
    ids: dict[str, list[str]] = {}
    for kind, count in counts.items():
        ids[kind] = await work.upload(*names(kind, count))
    assert await work.upload(*names("good", 20)) == ids["good"][:20]  # sent again: known
    everybody = {each for of_kind in ids.values() for each in of_kind}
    assert len(everybody) == 110

    async with work.platforms["ingest"].db.work() as sql:
        for document_id in ids["cancelled"]:
            await documents.cancel(sql, TENANT, document_id)
        for document_id in ids["deleted"]:
            await documents.tombstone(sql, TENANT, document_id)
    while True:
        rows = await work.rows()
        assert everybody - set(rows) <= set(ids["deleted"])
        purged = set(rows) == everybody - set(ids["deleted"])
        if purged and all(row["state"] in FINAL for row in rows.values()):
            break
        await asyncio.sleep(0.05)

    by_kind = {
        kind: Counter(rows[each]["state"] for each in of_kind if each in rows)
        for kind, of_kind in ids.items()
    }
    assert by_kind == {
        "good": {"indexed": 70},
        "later": {"indexed": 10},
        "corrupt": {"failed": 10},
        "bug": {"failed": 5},
        "away": {"failed": 5},
        "cancelled": {"cancelled": 5},
        "deleted": {},
    }
    reasons = Counter(row["reason"] for row in rows.values() if row["state"] == "failed")
    assert reasons == {"corrupt": 10, "internal-error": 5, "retries-exhausted": 5}

    async def each_of_our_faults_left_a_letter() -> bool:
        async with work.db.reading() as sql:
            letters = await sql.rows(select(dead_letters))
        return Counter(letter["key"] for letter in letters) == Counter(ids["bug"] + ids["away"])

    await until(each_of_our_faults_left_a_letter)
    await the_stores_hold_what_is_indexed(work)
    await every_event_of_a_document_is_in_its_trace(work)


async def the_stores_hold_what_is_indexed(work: Pipeline) -> None:
    rows = await work.rows()
    wanted = {each: row["counts"]["chunks"] for each, row in rows.items() if row["active_counts"]}
    for index, name in (
        (work.vectors, ACTIVE.vector_collection),
        (work.keywords, ACTIVE.keyword_index),
    ):
        assert Counter(row.document_id for row in index.rows[name].values()) == wanted


async def every_event_of_a_document_is_in_its_trace(work: Pipeline) -> None:
    """Retries, failures and dead letters too; a client's later request has a trace of its own."""
    async with work.db.reading() as sql:
        sent = await sql.rows(select(outbox.c.topic, outbox.c.key, outbox.c.headers))
        letters = await sql.rows(select(dead_letters))
    traces: dict[str, set[str]] = defaultdict(set)
    for row in (*sent, *letters):
        if not row["topic"].startswith(("documents.control", "documents.deleted")):
            found = tracing.parse(row["headers"]["traceparent"])
            assert found is not None
            traces[row["key"]].add(found.trace_id)
    assert traces == {each: {trace} for each, trace in work.traces.items()}


async def test_events_of_documents_that_are_gone_hold_up_nobody(work: Pipeline) -> None:
    await work.start()
    gone = [f"gone-{n}" for n in range(30)]  # in every partition
    async with work.platforms["ingest"].db.work() as sql:
        for each in gone:
            await sql.emit(DocumentUploaded(TENANT, each, 1, "a.txt", "text/plain", "k", 1))
            await sql.emit(DocumentParsed(TENANT, each, 1, "k", "k", 1))
            await sql.emit(DocumentChunked(TENANT, each, 1, 1, 1))
            await sql.emit(DocumentDeleted(TENANT, each))
    await work.upload(*names("good", 12))
    await work.until_states(indexed=12)
    reader = LagReader(work.db, KafkaBacklogs(KafkaConnection(work.broker.bootstrap)))

    async def nothing_waits() -> bool:
        report = await reader.read()
        waiting = {lag.of.topic for lag in report.lags if lag.waiting}
        # What is indexed is read for the graph, by a member that does not run here.
        return not any(
            topic.startswith("documents.") and not topic.startswith("documents.indexed")
            for topic in waiting
        )

    await until(nothing_waits, within_s=60)
    async with work.db.reading() as sql:
        assert await sql.rows(select(dead_letters)) == []
        again = outbox.c.topic.endswith(".retry")
        assert await sql.rows(select(outbox).where(again)) == []


async def test_documents_at_any_stage_go_on_by_themselves_after_everything_died(
    work: Pipeline,
) -> None:
    work.parser.fates.held["unparsed"] = asyncio.Event()
    work.embedder.fates.held["unindexed"] = asyncio.Event()
    await work.start("ingest", "parser", "chunker", "indexer")
    (done, tombstone) = await work.upload("good-0", "good-1")
    await work.until_states(indexed=2)
    await work.upload(*names("unparsed", 4), *names("unindexed", 4))
    await work.until_states(uploaded=4, chunked=4)
    await work.kill()
    async with work.db.work() as sql:
        await documents.tombstone(sql, TENANT, tombstone)  # its event gets nowhere either
    await work.broker.restart()
    await prepare_broker(KafkaConnection(work.broker.bootstrap), work.db, embedded=True)
    for fates in (work.parser.fates, work.embedder.fates):
        fates.held.clear()
    await work.start()
    await work.until_states(indexed=9, deleted=0)
    rows = await work.rows()
    assert done in rows
    assert tombstone not in rows
    assert {row["generation"] for row in rows.values()} == {1}
    await the_stores_hold_what_is_indexed(work)


async def test_a_queue_that_nobody_works_off_is_named_until_somebody_does(work: Pipeline) -> None:
    await work.start("ingest", "parser", "chunker")
    ids = await work.upload(*names("good", 3))
    await work.until_states(chunked=3)
    backlogs = KafkaBacklogs(KafkaConnection(work.broker.bootstrap))
    lags, stuck = LagReader(work.db, backlogs), StuckReader(work.db, backlogs)

    async def is_stalled() -> bool:
        return (await lags.read()).stalled

    await until(is_stalled, within_s=60)
    report = await lags.read()
    (stalled,) = [lag for lag in report.lags if lag.verdict.is_alarm]
    assert (stalled.of.group, stalled.of.topic, stalled.waiting) == ("indexer", CHUNKED, 3)
    assert "no indexer is running" in stalled.verdict.words
    told = await stuck.unmoved(TENANT, older_than_s=0, limit=10)
    assert {(each.row["id"], why.reason) for each, why in told} == {(i, "no-worker") for i in ids}
    await work.start("indexer")
    await work.until_states(indexed=3)
    assert not (await lags.read()).stalled
    assert await stuck.unmoved(TENANT, older_than_s=0, limit=10) == []


async def test_a_rate_limited_model_shows_until_when_and_then_it_goes_on(work: Pipeline) -> None:
    work.policies = replace(QUICK, retry=RetryPolicy(base_delay_s=6.0))
    work.embedder.fates.once["limited"] = TransientError("the model answered HTTP 429")
    await work.start()
    (document_id,) = await work.upload("limited-0")
    stuck = StuckReader(work.db, KafkaBacklogs(KafkaConnection(work.broker.bootstrap)))

    async def why() -> tuple[str, str]:
        unmoved = of_document((await work.rows())[document_id])
        if unmoved is None:
            return "final", ""
        ((_, found),) = await stuck.explained([unmoved])
        return found.reason, found.words

    async def is_limited() -> bool:
        return (await why())[0] == "rate-limited"

    await until(is_limited, within_s=60)
    words = (await why())[1]
    assert words.startswith("rate limited: try 2 comes in ")
    await work.until_states(indexed=1)
    assert work.embedder.fates.met["limited-0"] == 2
