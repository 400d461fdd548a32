"""Looking up what an index found costs by what was found, not by what the tenant has."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from libs.storage.sql import Database, UnitOfWork, alike, graph, hydration, open_database, pages

IDS = [f"d{number}" for number in range(100)]
Look = Callable[[UnitOfWork], Awaitable[Any]]

LOOKS: dict[str, Look] = {
    "hits with their passages": lambda sql: hydration.hydrate(sql, "t", IDS),
    "hits": lambda sql: hydration.hydrate(sql, "t", IDS, parents=False),
    "documents": lambda sql: pages.documents_by_id(sql, "t", IDS),
    "likeness": lambda sql: alike.alike(sql, "t", IDS),
    "rules": lambda sql: graph.facts_about(sql, "t", ["role:a", "role:b"], domains=[], limit=64),
    "a document's rules": lambda sql: graph.generations(sql, "t", "d1"),
}
DELETIONS: dict[str, Look] = {
    "chunks' rules": lambda sql: graph.write(sql, "t", "d1", 1, dict.fromkeys(IDS, ((), ()))),
    "a document's rules": lambda sql: graph.delete_document(sql, "t", "d1"),
    "a generation's rules": lambda sql: graph.clear(sql, "t", "d1", 1),
}


async def steps(db: Database, look: Look) -> list[str]:
    """How SQLite goes about the statements of `look`."""
    statements: list[tuple[str, Any]] = []

    def note(_c: Any, _k: Any, statement: str, parameters: Any, _x: Any, many: bool) -> None:
        if not many and statement.startswith(("SELECT", "DELETE")):
            statements.append((statement, parameters))

    event.listen(db.engine.sync_engine, "before_cursor_execute", note)
    async with db.work() as sql:
        await look(sql)
    event.remove(db.engine.sync_engine, "before_cursor_execute", note)
    assert statements
    async with db.engine.connect() as connection:
        return [
            str(row.detail)
            for statement, parameters in statements
            for row in await connection.exec_driver_sql(
                f"EXPLAIN QUERY PLAN {statement}", parameters
            )
        ]


@pytest.mark.parametrize("look", [*LOOKS.values(), *DELETIONS.values()], ids=[*LOOKS, *DELETIONS])
async def test_no_step_goes_through_all_rows_of_the_tenant(tmp_path: Path, look: Look) -> None:
    db = open_database(f"sqlite+aiosqlite:///{tmp_path / 'sluice.db'}")
    await db.create_schema()
    found = await steps(db, look)
    await db.close()
    assert [step for step in found if "(tenant=?)" in step or step.startswith("SCAN docu")] == []
