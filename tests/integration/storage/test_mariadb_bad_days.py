"""A MariaDB that deadlocks, dies, freezes or is cut off: nothing lost, nothing done twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial

import pytest
from sqlalchemy import func, insert, make_url, select, text, update

from libs.contracts import OutgoingRecord
from libs.kernel import ConflictError, TransientError, new_id
from libs.storage.sql import Database, UnitOfWork, engines, open_database, turns
from libs.storage.sql.failures import LostRaceError
from libs.storage.sql.tables import broker_epoch, leases, outbox
from libs.storage.sql.tables import turns as turns_table
from tests.servers.databases import empty_database
from tests.servers.frame import running
from tests.servers.mariadb import MariaDb
from tests.servers.proxy import Proxy
from tests.waiting import eventually

RECORD = OutgoingRecord("documents.uploaded.v1", "d1", b"value", {"ce_id": "1"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    """One that the tests of this module may hurt."""
    with running(MariaDb(tmp_path_factory.mktemp("hurt") / "mariadb")) as server:
        yield server


@pytest.fixture
def url(server: MariaDb) -> Iterator[str]:
    with empty_database(server.url()) as url:
        yield url


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    database = open_database(url)
    await database.create_schema()
    yield database
    await database.close()


async def add(sql: UnitOfWork, name: str, number: int = 0) -> None:
    await sql.execute(insert(leases).values(name=name, holder="h", expires_at=number))


async def count_up(sql: UnitOfWork, name: str) -> None:
    row = leases.c.name == name
    await sql.execute(update(leases).where(row).values(expires_at=leases.c.expires_at + 1))


async def numbers(db: Database) -> dict[str, int]:
    async with db.reading() as sql:
        return {row["name"]: row["expires_at"] for row in await sql.rows(select(leases))}


async def test_of_two_units_that_deadlock_one_is_repeated_and_both_happen_once(
    db: Database,
) -> None:
    async with db.work() as sql:
        await add(sql, "a")
        await add(sql, "b")
    holding = asyncio.Barrier(2)
    tries: list[str] = []

    async def both(first: str, second: str, sql: UnitOfWork) -> None:
        tries.append(first)
        await count_up(sql, first)
        if tries.count(first) == 1:
            await holding.wait()  # each holds what the other wants
        await count_up(sql, second)

    await asyncio.gather(db.repeated(partial(both, "a", "b")), db.repeated(partial(both, "b", "a")))
    assert len(tries) == 3  # the server chose one, and that one came again
    assert await numbers(db) == {"a": 2, "b": 2}


async def test_a_unit_that_the_server_undid_commits_nothing_even_if_it_goes_on(
    db: Database,
) -> None:
    async with db.work() as sql:
        await add(sql, "a")
        await add(sql, "b")
    holding = asyncio.Barrier(2)

    async def both(first: str, second: str) -> None:
        async with db.work() as sql:
            await add(sql, f"before {first}")
            await count_up(sql, first)
            await holding.wait()
            with suppress(TransientError):  # a unit with a bug: it takes no notice
                await count_up(sql, second)
            with suppress(TransientError):
                await add(sql, f"after {first}")

    ended = await asyncio.gather(both("a", "b"), both("b", "a"), return_exceptions=True)
    lost = [first for first, end in zip("ab", ended, strict=True) if end is not None]
    assert [type(end) for end in ended if end is not None] == [LostRaceError]
    assert not {f"before {lost[0]}", f"after {lost[0]}"} & set(await numbers(db))


async def test_a_server_killed_in_mid_work_loses_nothing_and_ours_goes_on_without_restart(
    server: MariaDb, db: Database
) -> None:
    acknowledged: set[str] = set()
    killed = asyncio.Event()

    async def write(name: str) -> None:
        async def once() -> None:
            async with db.work() as sql:
                with suppress(ConflictError):  # an unanswered commit had succeeded
                    await add(sql, name)
                await sql.emit_record(RECORD)
            acknowledged.add(name)

        await eventually(once, on=TransientError, within_s=60)

    async def writer(number: int) -> None:
        for n in range(40):
            if number == 0 and n == 10:
                server.kill()
                killed.set()
                await asyncio.sleep(0.2)  # the others see it
                server.start()
            await write(f"{number}.{n}")

    await asyncio.gather(*(writer(number) for number in range(4)))
    assert killed.is_set()
    assert set(await numbers(db)) == acknowledged
    assert len(acknowledged) == 160


async def test_a_frozen_server_is_waited_for_and_then_given_up_until_it_answers(
    server: MariaDb, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with db.work() as sql:
        await add(sql, "before")
    monkeypatch.setattr(engines, "SERVER_SILENCE_S", 1.0)
    server.freeze()
    try:
        for _ in range(2):
            with pytest.raises(TransientError, match=r"not answered|not available"):
                async with db.work() as sql:
                    await add(sql, "meanwhile")
    finally:
        server.thaw()

    async def after() -> None:
        async with db.work() as sql:
            await add(sql, "after")

    await eventually(after, on=TransientError, within_s=60)
    assert set(await numbers(db)) == {"before", "after"}


def through(proxy: Proxy, url: str) -> str:
    return make_url(url).set(port=proxy.port).render_as_string(hide_password=False)


def is_commit(piece: bytes) -> bool:
    return piece.endswith(b"\x03COMMIT")  # the statement, not the isolation level


async def test_a_commit_whose_answer_is_lost_is_done_once_however_often_it_is_repeated(
    db: Database, url: str, proxy: Proxy
) -> None:
    """Nobody can know whether it was committed, so its caller repeats it and finds what it did."""
    cut_off = open_database(through(proxy, url))
    async with db.work() as sql:
        conversation_id = await turns.create_conversation(sql, "t")
    key = new_id()

    async def ask(sql: UnitOfWork) -> str:
        made = await turns.create_turn(sql, "t", conversation_id, "why?", 0, idempotency_key=key)
        return str(made["id"])

    await cut_off.check_schema()  # connecting commits, too
    proxy.cut_answer_to(is_commit)
    with pytest.raises(TransientError):
        await cut_off.repeated(ask)
    assert proxy.cuts == 1
    async with db.reading() as sql:
        assert await sql.scalar(select(func.count()).select_from(turns_table)) == 1
    turn_id = await cut_off.repeated(ask)
    async with db.reading() as sql:
        assert await sql.scalar(select(func.count()).select_from(turns_table)) == 1
        assert await sql.scalar(select(func.count()).select_from(outbox)) == 1  # announced once
        assert await sql.scalar(select(turns_table.c.id)) == turn_id
    await cut_off.close()


async def test_a_compare_and_set_whose_answer_is_lost_takes_effect_once(
    db: Database, url: str, proxy: Proxy
) -> None:
    cut_off = open_database(through(proxy, url))
    async with db.work() as sql:
        await sql.execute(insert(broker_epoch).values(id=1, epoch="0", seen_at=0))

    async def step() -> bool:
        async with cut_off.work() as sql:
            moved = await sql.compare_and_set(
                update(broker_epoch).where(broker_epoch.c.epoch == "0").values(epoch="1")
            )
            if moved:
                await sql.emit_record(RECORD)
            return moved

    await cut_off.check_schema()  # connecting commits, too
    proxy.cut_answer_to(is_commit)
    with pytest.raises(TransientError):
        await step()
    assert await step() is False
    async with db.reading() as sql:
        assert await sql.scalar(select(broker_epoch.c.epoch)) == "1"
        assert await sql.scalar(select(func.count()).select_from(outbox)) == 1
    await cut_off.close()


async def test_connections_that_broke_while_idle_are_replaced_unseen(
    db: Database, url: str, proxy: Proxy
) -> None:
    cut_off = open_database(through(proxy, url))
    async with cut_off.work() as sql:
        await add(sql, "a")
    proxy.cut()
    async with cut_off.work() as sql:
        await add(sql, "b")
    assert set(await numbers(db)) == {"a", "b"}
    await cut_off.close()


async def test_a_server_that_refuses_is_transient_and_taken_when_it_is_there(
    url: str, proxy: Proxy
) -> None:
    database = open_database(through(proxy, url))
    proxy.refuses = True
    with pytest.raises(TransientError):
        await database.create_schema()
    proxy.refuses = False
    await eventually(database.create_schema, on=TransientError, within_s=60)
    await database.check_schema()
    await database.close()


async def impatiently(db: Database) -> None:
    async with db.work() as sql:
        await sql.execute(text("SET SESSION innodb_lock_wait_timeout=1"))
        await count_up(sql, "a")


async def test_a_wait_for_a_lock_ends_as_a_lost_race(url: str, db: Database) -> None:
    async with db.work() as sql:
        await add(sql, "a")
    impatient = open_database(url)
    async with db.work() as holder:
        await count_up(holder, "a")
        with pytest.raises(LostRaceError):
            await impatiently(impatient)
    await impatient.close()
    assert await numbers(db) == {"a": 1}
