"""The schema: what migrations make is what the tables say, on every kind of database."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, insert, select, text

from libs.kernel import TransientError
from libs.storage.sql import Database, metadata, open_database
from libs.storage.sql.migrating import configuration
from libs.storage.sql.schema import REVISION, SchemaError
from libs.storage.sql.tables import leases


def differences(connection: Connection) -> list[object]:
    options = {"compare_type": True, "compare_server_default": True}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


async def test_the_migrated_schema_is_the_one_of_the_tables(db: Database) -> None:
    """After a change of tables.py: add a revision, as the README's part on development says."""
    async with db.engine.connect() as connection:
        assert await connection.run_sync(differences) == []


def test_the_number_that_services_ask_for_is_the_newest_and_all_follow_each_other() -> None:
    scripts = ScriptDirectory.from_config(configuration())
    assert scripts.get_heads() == [REVISION]
    numbers = sorted(script.revision for script in scripts.walk_revisions())
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]


async def test_a_database_without_schema_is_refused_until_it_is_migrated(bare_sql: str) -> None:
    db = open_database(bare_sql)
    with pytest.raises(SchemaError, match=r"no schema of Sluice.*run `sluice migrate`") as caught:
        await db.check_schema()
    assert caught.value.missing == "schema"
    assert await db.create_schema() == (None, REVISION)
    await db.check_schema()
    assert await db.create_schema() == (REVISION, REVISION)
    await db.close()


@pytest.mark.parametrize(
    ("number", "says"), [("0000", "run `sluice migrate`"), ("9999", "start the newer version")]
)
async def test_an_older_schema_and_a_newer_one_are_refused_with_what_to_do(
    db: Database, number: str, says: str
) -> None:
    await set_number(db, number)
    with pytest.raises(SchemaError, match=f"schema {number}.*{says}"):
        await db.check_schema()
    await set_number(db, REVISION)


async def test_a_newer_schema_is_never_migrated(db: Database) -> None:
    await set_number(db, "9999")
    with pytest.raises(SchemaError, match="newer"):
        await db.create_schema()
    await set_number(db, REVISION)


async def test_tables_from_before_there_were_numbers_are_recognised_and_completed(
    bare_sql: str,
) -> None:
    db = open_database(bare_sql)
    async with db.engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
        await connection.execute(insert(leases).values(name="kept", holder="h", expires_at=1))
        await connection.execute(text("DROP TABLE workers"))
        await connection.execute(text("ALTER TABLE documents DROP COLUMN detail"))
    with pytest.raises(SchemaError):
        await db.check_schema()
    assert await db.create_schema() == (None, REVISION)
    async with db.engine.connect() as connection:
        assert await connection.run_sync(differences) == []
        assert await connection.scalar(select(leases.c.name)) == "kept"
    await db.close()


async def test_several_that_migrate_at_once_take_turns(bare_sql: str) -> None:
    several = [open_database(bare_sql) for _ in range(3)]
    made = await asyncio.gather(*(db.create_schema() for db in several))
    assert sorted(made, key=str) == [(REVISION, REVISION)] * 2 + [(None, REVISION)]
    for db in several:
        await db.close()


async def test_what_was_migrated_is_committed_before_the_next_one_may_begin(bare_sql: str) -> None:
    db, steps = open_database(bare_sql), list[str]()

    def note(statement: str) -> None:
        steps.append(" ".join(statement.split()[:3]))

    engine = db.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _cu, text, *_: note(text))
    event.listen(engine, "commit", lambda _: note("COMMIT"))
    await db.create_schema()
    await db.close()
    numbered = max(n for n, step in enumerate(steps) if step.endswith("INTO alembic_version"))
    let_go = [n for n, step in enumerate(steps) if "RELEASE_LOCK" in step] or [len(steps)]
    assert "COMMIT" in steps[numbered : let_go[-1]]


async def test_no_table_yet_is_for_the_moment_and_any_two_texts_differ(bare_sql: str) -> None:
    db = open_database(bare_sql)
    with pytest.raises(TransientError):
        async with db.reading() as sql:
            await sql.rows(select(leases))
    await db.create_schema()
    names = ["a", "A", "ä", "a ", "中", "𠮷", "😀", "😁"]
    async with db.work() as sql:
        await sql.execute(
            insert(leases), [{"name": name, "holder": "h", "expires_at": 1} for name in names]
        )
    async with db.reading() as sql:
        for name in names:
            found = await sql.rows(select(leases.c.name).where(leases.c.name == name))
            assert [row["name"] for row in found] == [name]
    await db.close()


async def set_number(db: Database, number: str) -> None:
    async with db.work() as sql:
        await sql.execute(text("UPDATE alembic_version SET version_num = :n"), {"n": number})
