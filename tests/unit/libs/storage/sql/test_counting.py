"""Metrics count what was committed, and nothing that was rolled back."""

from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from libs.kernel import new_id
from libs.storage.sql import Database, documents, turns, uploads
from tests.servers.databases import sqlite


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


class ChangedMindError(Exception):
    pass


async def test_documents_failures_bytes_and_turn_events_are_counted_once_committed(
    tmp_path: Path,
) -> None:
    def counts() -> tuple[float, ...]:
        return (
            count("documents_total", state="uploaded"),
            count("documents_total", state="failed"),
            count("document_failures_total", stage="parse", reason="corrupt"),
            count("uploaded_bytes_total"),
            count("turn_events_total", type="status"),
        )

    before = counts()
    async with sqlite(tmp_path) as db:
        with pytest.raises(ChangedMindError):
            await _change_ones_mind(db)
        assert counts() == before
        file = _file()
        async with db.work() as sql:
            await uploads.take_in(sql, "t", file)
        async with db.work() as sql:
            what = {"stage": "parse", "reason": "corrupt", "detail": "It is cut off."}
            assert await documents.fail(sql, "t", file.document_id, 1, **what)
            conversation = await turns.create_conversation(sql, "t")
            await turns.create_turn(sql, "t", conversation, "why?", 0)
    grown = [now - then for now, then in zip(counts(), before, strict=True)]
    assert grown == [1, 1, 1, 42, 1]


async def _change_ones_mind(db: Database) -> None:
    async with db.work() as sql:
        await uploads.take_in(sql, "t", _file())
        raise ChangedMindError


def _file() -> uploads.StoredFile:
    return uploads.StoredFile(
        document_id=new_id(),
        name="a.txt",
        media_type="text/plain",
        size_bytes=42,
        sha256="0" * 64,
    )
