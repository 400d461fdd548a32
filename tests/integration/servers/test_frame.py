"""The servers of the tests themselves: ready when given, killed at will, missed by name."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

from tests.servers.frame import MissingServerError, Server, cached, program, running
from tests.servers.mariadb import MariaDb


async def ask(server: MariaDb, statement: str) -> object:
    engine = create_async_engine(server.url(), isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            result = await connection.execute(text(statement))
            return result.scalar() if result.returns_rows else None
    finally:
        await engine.dispose()


async def test_a_killed_server_comes_back_with_its_data_at_the_same_address(
    tmp_path: Path,
) -> None:
    with running(MariaDb(tmp_path / "mariadb")) as server:
        for statement in (
            "CREATE DATABASE d",
            "CREATE TABLE d.t (n INT)",
            "INSERT INTO d.t VALUES (7)",
        ):
            await ask(server, statement)
        server.kill()
        with pytest.raises(OperationalError):
            await ask(server, "SELECT 1")
        server.start()
        assert await ask(server, "SELECT n FROM d.t") == 7
    with pytest.raises(OperationalError):
        await ask(server, "SELECT 1")


class NeverHad(Server):
    name = "Nonesuch"

    def provide(self) -> None:
        program("no-such-program", install="it does not exist")

    def command(self) -> Sequence[str | Path]:
        return []

    def is_ready(self) -> bool:
        return False


@pytest.mark.parametrize(("in_ci", "outcome"), [("true", "Failed"), ("", "Skipped")])
def test_a_missing_server_skips_its_tests_by_name_and_fails_them_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_ci: str, outcome: str
) -> None:
    monkeypatch.setenv("CI", in_ci)
    missed = pytest.raises(BaseException, match="Nonesuch is missing")
    with missed as caught, running(NeverHad(tmp_path)):
        pass
    assert type(caught.value).__name__ == outcome


def test_what_was_made_once_is_not_made_again_but_what_failed_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_TEST_CACHE", str(tmp_path))
    made: list[Path] = []

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise MissingServerError("the registry is away")

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "whole").touch()

    with pytest.raises(MissingServerError):
        cached("thing-1.0", fail)
    for _ in range(2):
        assert [file.name for file in cached("thing-1.0", make).iterdir()] == ["whole"]
    assert len(made) == 1
