"""The ingest app over SQLite in a temporary folder and an object store in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from libs.contracts import decode
from libs.storage.keys import parsed_key, text_key
from libs.storage.sql import Database, api_keys, documents
from libs.storage.sql.tables import outbox
from services.ingest.api.app import create_app
from services.ingest.api.deps import Ingest
from tests.fakes import FakeObjectStore

MAX_UPLOAD_BYTES = 100_000


@dataclass
class World:
    """An app, what lies behind it, and a client with a member's key of the tenant `acme`."""

    app: FastAPI
    db: Database
    objects: FakeObjectStore
    client: httpx.AsyncClient
    home: Path

    async def upload(self, data: bytes = b"hello", name: str = "a.txt", **form: Any) -> Any:
        response = await self.client.post("/v1/documents", files={"file": (name, data)}, data=form)
        assert response.status_code in {200, 202}, response.text
        return response.json()

    async def key(self, tenant: str = "acme", role: str = "member") -> dict[str, str]:
        async with self.db.work() as sql:
            made = await api_keys.create(sql, tenant, role=role, name="test")
        return {"X-API-Key": made.clear}

    async def events(self) -> list[Any]:
        """Every event that left through the outbox, oldest first."""
        async with self.db.reading() as sql:
            rows = await sql.rows(select(outbox).order_by(outbox.c.id))
        return [decode(row["value"]) for row in rows]

    async def parse(self, document_id: str, generation: int = 1, text: str = "héllo 🍜") -> None:
        of = ("acme", document_id, generation)
        self.objects.objects[parsed_key(*of)] = b"{}"
        self.objects.objects[text_key(*of)] = text.encode()
        counts = {"pages": 1, "chars": len(text)}
        async with self.db.work() as sql:
            assert await documents.advance(
                sql, *of, expect={"uploaded"}, to="parsed", counts=counts
            )

    async def index(self, document_id: str, generation: int = 1) -> None:
        of = ("acme", document_id, generation)
        await self.parse(document_id, generation)
        async with self.db.work() as sql:
            counts = {"chunks": 2, "parents": 1}
            assert await documents.advance(sql, *of, expect={"parsed"}, to="chunked", counts=counts)
            assert await documents.activate(sql, *of)

    async def fail(self, document_id: str, generation: int = 1) -> None:
        async with self.db.work() as sql:
            assert await documents.fail(
                sql, "acme", document_id, generation, stage="parse", reason="corrupt", detail="bad"
            )


@pytest.fixture
async def world(db: Database, tmp_path: Path) -> AsyncIterator[World]:
    objects = FakeObjectStore()
    app = create_app(Ingest(db, objects, MAX_UPLOAD_BYTES, 0.01), missing=_nothing)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        made = World(app, db, objects, client, tmp_path)
        client.headers.update(await made.key())
        yield made


async def _nothing() -> list[str]:
    return []


def assert_problem(response: httpx.Response, status: int, slug: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["type"] == f"urn:sluice:problem:{slug}"
    assert body["detail"]
