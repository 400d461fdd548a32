"""`sluice migrate`: one command, safe to repeat, that says what is wrong."""

import asyncio
import json

from sqlalchemy import text
from typer.testing import CliRunner

from libs.storage.sql import open_database
from libs.storage.sql.schema import REVISION
from services.cli.__main__ import app


def sluice(url: str, *options: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["migrate", *options], env={"DATABASE_URL": url})
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


async def set_number(url: str, number: str) -> None:
    db = open_database(url)
    await db.check_schema()
    async with db.work() as sql:
        await sql.execute(text("UPDATE alembic_version SET version_num = :n"), {"n": number})
    await db.close()


def test_an_empty_database_is_made_a_repeat_changes_nothing_and_a_newer_one_is_refused(
    bare_sql: str,
) -> None:
    code, out, err = sluice(bare_sql, "--json")
    assert (code, json.loads(out)) == (0, {"before": None, "schema": REVISION}), err
    code, out, _ = sluice(bare_sql, "--json")
    assert (code, json.loads(out)) == (0, {"before": REVISION, "schema": REVISION})
    asyncio.run(set_number(bare_sql, "9999"))
    code, _, err = sluice(bare_sql)
    assert (code, "made by a newer Sluice" in err) == (1, True)


def test_an_address_of_another_kind_says_what_is_possible() -> None:
    code, _, err = sluice("postgresql://me:secret@host/db")
    assert (code, "it may be mysql, mariadb or sqlite" in err) == (2, True), err
    assert "secret" not in err


def test_a_database_that_is_away_ends_it_with_3() -> None:
    code, _, err = sluice("mysql://root@127.0.0.1:1/sluice")
    assert (code, "127.0.0.1" in err) == (3, True), err
