"""`sluice keys bootstrap`: the first key of a platform that nobody has a key of yet."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from libs.kernel import Principal
from libs.storage.sql import Database, api_keys, open_database
from services.cli.__main__ import app

KEY = "a-key-that-somebody-made-elsewhere-0123456789"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}"
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("SLUICE_API_KEY", KEY)
    return url


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    database = open_database(url)
    await database.create_schema()
    yield database
    await database.close()


async def bootstrap(*arguments: str) -> tuple[int, str]:
    """In a thread: the command runs a loop of its own."""
    command = ["keys", "bootstrap", *arguments]
    result = await asyncio.to_thread(CliRunner().invoke, app, command)
    return result.exit_code, " ".join(result.output.split())


async def test_the_key_is_an_administrators_and_a_repeat_makes_no_second_one(db: Database) -> None:
    assert (await bootstrap("--tenant", "acme"))[0] == 0
    assert (await bootstrap("--tenant", "acme"))[0] == 0
    async with db.reading() as sql:
        holder = await api_keys.authenticate(sql, KEY)
        (row,) = await api_keys.listing(sql, "acme")
    assert holder == Principal("acme", row["id"], "admin")


async def test_a_revoked_key_is_not_let_in_again(db: Database) -> None:
    await bootstrap()
    async with db.work() as sql:
        (row,) = await api_keys.listing(sql, "main")
        await api_keys.revoke(sql, "main", row["id"])
    code, said = await bootstrap()
    assert (code, "revoked" in said) == (1, True)
    async with db.reading() as sql:
        assert await api_keys.authenticate(sql, KEY) is None


async def test_a_key_of_one_tenant_is_not_made_another_ones(db: Database) -> None:
    await bootstrap()
    code, said = await bootstrap("--tenant", "other")
    assert (code, "admin of main" in said) == (1, True)


@pytest.mark.parametrize(
    ("key", "code", "said"), [("short", 1, "32 characters"), ("", 2, "SLUICE_API_KEY")]
)
async def test_a_weak_or_missing_key_is_refused(
    db: Database, monkeypatch: pytest.MonkeyPatch, key: str, code: int, said: str
) -> None:
    monkeypatch.setenv("SLUICE_API_KEY", key)
    found, text = await bootstrap()
    assert (found, said in text) == (code, True)
