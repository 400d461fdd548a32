"""Readiness: every needed service lives and is ready, and a search finds its way."""

import asyncio
from pathlib import Path

from libs.kernel import DiskError, TransientError, new_id, now_us
from libs.service.health import Health
from libs.storage.sql import Database, open_database, workers
from services.gateway.readiness import NEEDED, Readiness


async def found() -> None: ...


async def away() -> None:
    raise TransientError("no Milvus")


async def silent() -> None:
    await asyncio.Event().wait()


async def beat(db: Database, service: str, *missing: str) -> None:
    async with db.work() as sql:
        await workers.beat(sql, workers.Worker(new_id(), service, "h", 1, now_us()), missing)


async def test_ready_when_every_service_has_one_ready_process(db: Database) -> None:
    for service in NEEDED:
        await beat(db, service)
    await beat(db, "executor", "kafka")  # another one is still starting
    assert await Readiness(db, Health(), {"search": found}).missing() == []


async def test_what_lacks_is_named_with_what_it_waits_for(db: Database) -> None:
    for service in set(NEEDED) - {"chunker", "executor"}:
        await beat(db, service)
    await beat(db, "executor", "kafka")
    await beat(db, "executor", "search index")
    health = Health()
    health.report("broker", "kafka")
    missing = await Readiness(db, health, {"search": away}).missing()
    assert missing == ["chunker", "executor (kafka, search index)", "kafka", "search"]


async def test_a_disk_that_takes_no_heartbeats_is_named_and_not_those_who_are_silent(
    db: Database,
) -> None:
    await beat(db, "parser", "disk")
    health = Health()
    health.report("sql", "disk")
    assert await Readiness(db, health, {"search": found}).missing() == ["disk", "parser (disk)"]


async def test_a_probe_that_knows_why_says_so(db: Database) -> None:
    async def full() -> None:
        raise DiskError("no room")

    for service in NEEDED:
        await beat(db, service)
    assert await Readiness(db, Health(), {"search": full}).missing() == ["disk"]


async def test_a_dead_port_counts_though_its_heartbeat_is_fresh(db: Database) -> None:
    for service in NEEDED:
        await beat(db, service)
    ready = Readiness(db, Health(), {"search": found, "ingest": away})
    assert await ready.missing() == ["ingest"]


async def test_a_search_that_does_not_answer_is_missing_in_time(db: Database) -> None:
    for service in NEEDED:
        await beat(db, service)
    quick = Readiness(db, Health(), {"search": silent}, probe_timeout_s=1.0)
    assert await quick.missing() == ["search"]


async def test_without_sql_nothing_is_known_but_that(tmp_path: Path) -> None:
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'without-tables.db'}")
    assert await Readiness(db, Health(), {"search": found}).missing() == ["sql"]
    await db.close()


async def test_an_sql_server_that_says_nothing_is_named_in_time_and_nothing_else() -> None:
    async def listens(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)

    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(listens, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    db = open_database(f"mysql+asyncmy://root@127.0.0.1:{port}/sluice")
    quick = Readiness(db, Health(), {"milvus": silent}, probe_timeout_s=0.05)
    async with asyncio.timeout(60):
        assert await quick.missing() == ["sql"]
    await db.close()
    for writer in writers:
        writer.close()
    server.close()


async def test_many_askers_are_one_look(db: Database) -> None:
    looks: list[int] = []

    async def look() -> None:
        looks.append(1)

    ready = Readiness(db, Health(), {"search": look})
    answers = await asyncio.gather(*(ready.missing() for _ in range(20)))
    assert len(looks) == 1
    assert all(answer == sorted(NEEDED) for answer in answers)
