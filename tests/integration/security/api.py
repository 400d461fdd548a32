"""The whole HTTP surface over real SQLite and files, with workers that end whatever is asked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
from sqlalchemy import insert, select

from libs.documents.model import Block, BlockKind, ParsedDocument
from libs.documents.serialise import dump_document
from libs.kernel import new_id, now_us
from libs.storage.keys import parsed_key, text_key
from libs.storage.objects import DiskObjectStore
from libs.storage.ports import ObjectStore
from libs.storage.sql import Database, api_keys, documents, turns
from libs.storage.sql import tables as t
from services.gateway.app import create_app as gateway_app
from services.ingest.api.app import create_app as ingest_app
from services.ingest.api.deps import Ingest
from tests.integration.gateway.serving import served
from tests.unit.services.gateway.conftest import DONE, Stage

MAX_UPLOAD_BYTES = 100_000
_TICK_S = 0.02


@dataclass
class Api:
    """The gateway and the ingest behind it, each at an address of its own."""

    gateway_url: str
    ingest_url: str
    stage: Stage
    objects: ObjectStore

    @property
    def db(self) -> Database:
        return self.stage.gateway.db

    def client(self, key: str = "", **headers: str) -> httpx.AsyncClient:
        """A client of the gateway."""
        if key:
            headers["X-API-Key"] = key
        return httpx.AsyncClient(base_url=self.gateway_url, headers=headers, timeout=30)

    async def key(self, role: str, tenant: str = "acme") -> str:
        async with self.db.work() as sql:
            return (await api_keys.create(sql, tenant, role=role, name="test")).clear

    async def known_ids(self, key: str) -> str:
        """Ids that exist, by the name of their path parameter, as JSON."""
        async with self.client(key) as client:
            file = await client.post("/v1/documents", files={"file": ("a.txt", b"a gate")})
            conversation = (await client.post("/v1/conversations")).json()["id"]
            asked = await client.post(
                f"/v1/conversations/{conversation}/turns", json={"text": "What?"}
            )
            made = await client.post("/v1/admin/keys", json={"name": "example"})
        return json.dumps(
            {
                "letter_id": await self._dead_letter(),
                "key_id": made.json()["id"],
                "document_id": file.json()["id"],
                "conversation_id": conversation,
                "turn_id": asked.json()["turn_id"],
            }
        )

    async def _dead_letter(self) -> str:
        """A letter of the first tenant that nobody can read."""
        letter = {
            "id": new_id(),
            "tenant": "acme",
            "topic": "documents.chunked.v1",
            "group_id": "indexer",
            "partition": 0,
            "offset": 0,
            "key": "k",
            "value": b"x",
            "headers": {},
            "reason": "undecodable",
            "detail": "",
            "attempts": 1,
            "created_at": now_us(),
        }
        async with self.db.work() as sql:
            await sql.execute(insert(t.dead_letters).values(**letter))
        return str(letter["id"])


@asynccontextmanager
async def running_api(stage: Stage, folder: Path) -> AsyncIterator[Api]:
    """Both services on ports of their own; a turn is answered and a document indexed at once."""
    db, objects = stage.gateway.db, DiskObjectStore(folder)
    ingest = Ingest(db, objects, MAX_UPLOAD_BYTES, 0.02)
    async with (
        served(ingest_app(ingest, missing=_nothing)) as behind,
        httpx.AsyncClient(base_url=behind, timeout=30) as client,
    ):
        settings = stage.gateway.settings.model_copy(update={"answer_timeout_s": 2.0})
        stage.gateway = replace(stage.gateway, ingest=client, settings=settings)
        async with served(gateway_app(stage.gateway)) as front:
            working = asyncio.create_task(_work(stage, objects))
            try:
                yield Api(front, behind, stage, objects)
            finally:
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)


async def _work(stage: Stage, objects: ObjectStore) -> None:
    while True:
        async with stage.gateway.db.reading() as sql:
            asked = await sql.rows(select(t.turns).where(t.turns.c.state.in_(turns.OPEN_STATES)))
            stored = await sql.rows(
                select(t.documents).where(t.documents.c.state.in_(("uploaded", "parsed")))
            )
        for turn in asked:
            await stage.executor.end(turn["id"], DONE)
        for document in stored:
            await _index(stage.gateway.db, objects, (document["tenant"], document["id"]))
        await asyncio.sleep(_TICK_S)


async def _index(db: Database, objects: ObjectStore, of: tuple[str, str]) -> None:
    async with db.reading() as sql:
        row = await documents.find(sql, *of)
    if row is None:
        return
    generation = (*of, row["generation"])
    blocks = [Block(BlockKind.PARAGRAPH, 0, len("a gate"))]
    files = dump_document(ParsedDocument("a gate", blocks, "text/plain"))
    await objects.put(text_key(*generation), files.text)
    await objects.put(parsed_key(*generation), files.document)
    async with db.work() as sql:
        for before, after in (("uploaded", "parsed"), ("parsed", "chunked")):
            await documents.advance(sql, *generation, expect={before}, to=after)
        await documents.activate(sql, *generation)


async def _nothing() -> list[str]:
    return []
