"""The real parser and chunker on a real broker: from an upload to chunks or a named failure."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import RowMapping

from libs.eventbus import KafkaConnection
from libs.eventbus.preparation import prepare_broker
from libs.kernel import new_id
from libs.storage.keys import original_key, text_key
from libs.storage.objects import DiskObjectStore
from libs.storage.sql import Database, chunks, documents
from libs.storage.sql.uploads import StoredFile, take_in
from tests.broker import running_broker
from tests.integration.parser.made_files import docx, paragraph, pdf, table

pytestmark = pytest.mark.integration

TENANT = "acme"
WORD = docx(
    paragraph("考勤", "H1") + paragraph("年休假五天。") + table(("年限", "天数"), ("1", "5"))
)
EXPECTED = {
    "手册.docx": "chunked",
    "notes.md": "chunked",
    "urgent.txt": "chunked",
    "scan.pdf": "no-text-layer",
    "cut.pdf": "corrupt",
    "empty.txt": "empty",
}
FILES = {
    "手册.docx": WORD,
    "notes.md": b"# Notes\n\nSee you in June.\n",
    "urgent.txt": "第一章 总则\n年休假五天。".encode("gb18030"),
    "scan.pdf": pdf(""),
    "cut.pdf": b"%PDF-1.4 and no more",
    "empty.txt": b" ",
}


@asynccontextmanager
async def service(module: str, home: Path, bootstrap: str) -> AsyncIterator[Process]:
    env = os.environ | {"SLUICE_HOME": str(home), "KAFKA_BOOTSTRAP": bootstrap}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, env=env)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), timeout=60)


async def upload(db: Database, objects: DiskObjectStore, name: str) -> str:
    document_id, data = new_id(), FILES[name]
    await objects.put(original_key(TENANT, document_id), data)
    priority = "urgent" if name.startswith("urgent") else "normal"
    file = StoredFile(document_id, name, "", len(data), document_id, priority=priority)
    async with db.work() as sql:
        await take_in(sql, TENANT, file)
    return document_id


async def ended(db: Database, document_id: str) -> RowMapping:
    """The row once nothing is left to do for the parser and the chunker."""
    async with asyncio.timeout(60):
        while True:
            async with db.reading() as sql:
                row = await documents.load(sql, TENANT, document_id)
            if row["state"] in {"chunked", "failed"}:
                return row
            await asyncio.sleep(0.1)


async def test_uploads_end_chunked_or_failed_with_a_reason(db: Database, tmp_path: Path) -> None:
    objects = DiskObjectStore(tmp_path / "objects")
    async with running_broker() as bootstrap:
        await prepare_broker(KafkaConnection(bootstrap), db, embedded=True)
        async with (
            service("services.ingest.parser", tmp_path, bootstrap) as parser,
            service("services.chunker", tmp_path, bootstrap),
        ):
            ids = {name: await upload(db, objects, name) for name in FILES}
            rows = {name: await ended(db, id_) for name, id_ in ids.items()}
        assert parser.returncode == 0
    assert {name: row["reason"] or row["state"] for name, row in rows.items()} == EXPECTED
    for name, row in rows.items():
        if row["state"] == "failed":
            continue
        text = (await objects.get(text_key(TENANT, ids[name], 1))).decode()
        async with db.reading() as sql:
            children = await chunks.children(sql, TENANT, ids[name], 1)
        assert len(children) == row["counts"]["chunks"] > 0
        assert all(child.text == text[child.start : child.end] for child in children)
