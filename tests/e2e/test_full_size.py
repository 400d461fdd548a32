"""The local stack upon full-size servers, by settings alone: what a user of them sees."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator

import pytest
from elasticsearch import Elasticsearch
from pymilvus import MilvusClient
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.e2e.stack import ROOT, Stack, wait_until
from tests.servers.frame import Server
from tests.servers.full import BUCKET, FullSize, full_size

pytestmark = [pytest.mark.e2e, pytest.mark.on_server]

FILES = ROOT / "tests" / "files"
UPLOADS = {
    "memo.pdf": (FILES / "fake-memo.pdf").read_bytes(),
    "手册.docx": (FILES / "xinghe_headings.docx").read_bytes(),
    "报销制度.md": "子公司单笔报销金额超过两万元的，须经母公司财务总监审批。".encode(),
}
QUESTIONS = {
    "memo.pdf": ("How many bottles of water were delivered?", "20,000"),
    "手册.docx": ("加班须在哪个系统提交申请？", "云考勤"),
    "报销制度.md": ("子公司报销超过两万元由谁审批？", "母公司财务总监"),
}
WORKERS = ("parser", "chunker", "indexer", "orchestrator", "executor", "memory_compactor")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullSize]:
    with full_size(tmp_path_factory.mktemp("servers")) as servers:
        yield servers


@pytest.fixture(scope="module")
def stack(servers: FullSize, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Two processes of each worker, over a database and a broker set up by hand before."""
    home = tmp_path_factory.mktemp("full") / "home"
    stack = Stack(home, {**servers.settings, "SLUICE_REPLICAS": "2"})
    for command in (["migrate"], ["topics", "apply"]):
        done = stack.cli(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    stack.start()
    try:
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def library(stack: Stack) -> dict[str, str]:
    """Each upload's document by its name."""
    return {name: _indexed(stack, name, content) for name, content in UPLOADS.items()}


def test_no_embedded_part_runs_and_every_worker_twice(stack: Stack) -> None:
    expected = {"ingest", "gateway", *WORKERS, *(f"{name}-2" for name in WORKERS)}
    assert set(stack.processes()) == expected


@pytest.mark.parametrize("name", UPLOADS)
def test_an_answer_cites_what_was_uploaded(
    stack: Stack, library: dict[str, str], name: str
) -> None:
    question, fact = QUESTIONS[name]
    turn = stack.ask(question)
    assert fact in turn["answer"], turn
    cited = [each for each in turn["citations"] if each["document_id"] == library[name]]
    assert any(fact in each["quote"] for each in cited)


def test_a_document_parsed_again_is_found_as_before(stack: Stack, library: dict[str, str]) -> None:
    document_id = library["手册.docx"]
    with stack.client() as client:
        again = client.post(f"/v1/documents/{document_id}/reparse")
        assert again.is_success, again.text
    done = stack.finished(document_id)
    assert (done["state"], done["generation"]) == ("indexed", again.json()["generation"])
    question, fact = QUESTIONS["手册.docx"]
    assert fact in stack.ask(question)["answer"]


def test_workers_killed_in_the_middle_lose_nothing(stack: Stack) -> None:
    names = [f"memo-{number}.txt" for number in range(8)]
    with stack.client() as client:
        ids = []
        for number, name in enumerate(names):
            content = f"Memo {number}: the crate of {name} stands in hall {number + 300}."
            accepted = client.post("/v1/documents", files={"file": (name, content)})
            assert accepted.is_success, accepted.text
            ids.append(accepted.json()["id"])
    for victim in ("parser", "chunker-2", "indexer"):
        os.kill(stack.processes()[victim], signal.SIGKILL)
    assert {stack.finished(each)["state"] for each in ids} == {"indexed"}
    assert "305" in stack.ask("In which hall does the crate of memo-5.txt stand?")["answer"]


@pytest.mark.parametrize(
    ("server", "named"),
    [
        ("kafka", "kafka"),
        ("mysql", "sql"),
        ("minio", "objects"),
        ("tika", "tika"),
        ("milvus", "milvus"),
        ("elasticsearch", "elasticsearch"),
    ],
)
def test_ready_names_the_server_that_is_away_until_it_is_back(
    stack: Stack, servers: FullSize, library: dict[str, str], server: str, named: str
) -> None:
    away: Server = servers.servers[server]
    away.freeze()
    try:
        wait_until(lambda: any(named in each for each in stack.missing()), f"/ready names {named}")
    finally:
        away.thaw()
    wait_until(stack.is_ready, f"ready again after {server}")
    question, fact = QUESTIONS["memo.pdf"]
    assert fact in stack.ask(question)["answer"]


def test_a_deleted_document_is_gone_from_every_server(stack: Stack, servers: FullSize) -> None:
    document_id = _indexed(stack, "pets.txt", "The office rabbit is called Hanswurst.")
    assert all(_held(servers, document_id).values()), _held(servers, document_id)
    with stack.client() as client:
        assert client.delete(f"/v1/documents/{document_id}").is_success
    wait_until(
        lambda: not any(_held(servers, document_id).values()), "nothing left of it in any server"
    )
    assert stack.ask("What is the name of the office rabbit?")["declined"]


def test_the_command_finds_every_store_in_order(stack: Stack, library: dict[str, str]) -> None:
    fsck = stack.cli("fsck", "--grace", "0", "--json")
    assert fsck.returncode == 0, fsck.stdout + fsck.stderr
    assert json.loads(fsck.stdout)["summary"]["documents"] > len(library)
    lag = stack.cli("lag", "--json")
    assert lag.returncode == 0, lag.stdout + lag.stderr
    live = {each["service"]: each["live"] for each in json.loads(lag.stdout)["workers"]}
    assert {name: live[name] for name in WORKERS} == dict.fromkeys(WORKERS, 2)
    assert "no dead letters" in stack.cli("dlq", "list").stdout
    assert json.loads(stack.cli("stuck", "--json").stdout)["unfinished"] == []


def _indexed(stack: Stack, name: str, content: str | bytes) -> str:
    document = stack.upload(name, content)
    assert document["state"] == "indexed", document
    return str(document["id"])


def _held(servers: FullSize, document_id: str) -> dict[str, int]:
    """How much each server holds of a document, asked with its vendor's client."""
    objects = servers.minio.client().list_objects(BUCKET, recursive=True)
    return {
        "objects": sum(document_id in str(each.object_name) for each in objects),
        "vectors": _vectors(servers.milvus.uri, document_id),
        "keywords": _keywords(servers.elasticsearch.url(), document_id),
        "rows": _rows(servers.database_url, document_id),
    }


def _vectors(uri: str, document_id: str) -> int:
    client = MilvusClient(uri)
    try:
        return sum(
            client.query(
                collection,
                filter=f'document_id == "{document_id}"',
                output_fields=["count(*)"],
                consistency_level="Strong",
            )[0]["count(*)"]
            for collection in client.list_collections()
        )
    finally:
        client.close()


def _keywords(url: str, document_id: str) -> int:
    with Elasticsearch(url) as client:
        client.indices.refresh(index="*")
        found = client.count(index="*", query={"term": {"document": document_id}})
    return int(found["count"])


def _rows(url: str, document_id: str) -> int:
    async def count() -> int:
        engine = create_async_engine(url)
        async with engine.connect() as connection:
            of = {"id": document_id}
            documents = text("SELECT COUNT(*) FROM documents WHERE id = :id")
            chunks = text("SELECT COUNT(*) FROM chunks WHERE document_id = :id")
            counts = [
                (await connection.execute(each, of)).scalar_one() for each in (documents, chunks)
            ]
        await engine.dispose()
        return sum(counts)

    return asyncio.run(count())
