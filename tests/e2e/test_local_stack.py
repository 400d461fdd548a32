"""The whole product on one machine, used as its users do."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.stack import Stack, wait_until
from tests.waiting import is_gone

pytestmark = pytest.mark.e2e

POLICY_EN = """# Travel policy

## Hotels

Employees may spend at most 180 euros a night on a hotel in Berlin.
Bookings above that limit need the written approval of the department head.

## Trains

First class is allowed for journeys of more than four hours.
"""
POLICY_ZH = """# 报销制度

## 审批权限

子公司单笔报销金额超过两万元的，须经母公司财务总监审批。
低于该金额的报销由子公司总经理审批。

## 时限

报销单应当在费用发生后三十日内提交。
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("local") / "home")
    stack.start()
    yield stack
    stack.stop()


@pytest.fixture(scope="module")
def library(stack: Stack) -> dict[str, dict[str, Any]]:
    documents = {
        name: stack.upload(name, text)
        for name, text in {"travel.md": POLICY_EN, "报销制度.md": POLICY_ZH}.items()
    }
    assert {document["state"] for document in documents.values()} == {"indexed"}
    return documents


def test_operators_see_that_all_is_well(stack: Stack, library: dict[str, dict[str, Any]]) -> None:
    fsck = stack.cli("fsck", "--grace", "0", "--json")
    assert fsck.returncode == 0, fsck.stdout + fsck.stderr
    assert json.loads(fsck.stdout)["summary"]["documents"] == len(library)
    lag = stack.cli("lag", "--json")
    assert lag.returncode == 0, lag.stdout + lag.stderr
    assert {group["state"] for group in json.loads(lag.stdout)["groups"]} <= {"idle", "working"}
    stuck = stack.cli("stuck", "--json")
    nothing = {"unfinished": [], "failed": [], "more": False, "next_failed": None}
    assert json.loads(stuck.stdout) == nothing
    assert "no dead letters" in stack.cli("dlq", "list").stdout


@pytest.mark.parametrize(
    ("question", "name", "fact"),
    [
        ("How much may a hotel in Berlin cost per night?", "travel.md", "180 euros"),
        ("子公司报销超过两万元由谁审批？", "报销制度.md", "母公司财务总监"),
    ],
)
def test_an_answer_cites_the_passage_that_says_so(
    stack: Stack, library: dict[str, dict[str, Any]], question: str, name: str, fact: str
) -> None:
    turn = stack.ask(question)
    assert turn["state"] == "done"
    assert not turn["declined"]
    assert fact in turn["answer"]
    cited = [c for c in turn["citations"] if c["document_id"] == library[name]["id"]]
    assert any(fact in citation["quote"] for citation in cited)
    with stack.client() as client:
        text = client.get(f"/v1/documents/{library[name]['id']}/text").text
    for citation in cited:
        assert text[citation["start"] : citation["end"]] == citation["quote"]


@pytest.mark.parametrize(
    "question", ["What is the boiling point of tungsten?", "珠穆朗玛峰的高度是多少？"]
)
def test_what_no_document_mentions_is_declined_without_a_citation(
    stack: Stack, library: dict[str, dict[str, Any]], question: str
) -> None:
    turn = stack.ask(question)
    assert turn["state"] == "done"
    assert turn["declined"]
    assert turn["citations"] == []


def test_the_same_content_again_is_the_same_document(
    stack: Stack, library: dict[str, dict[str, Any]]
) -> None:
    with stack.client() as client:
        again = client.post("/v1/documents", files={"file": ("copy.md", POLICY_EN)})
    assert again.status_code == httpx.codes.OK
    assert again.json()["id"] == library["travel.md"]["id"]


def test_a_deleted_document_is_gone_from_answers_at_once(stack: Stack) -> None:
    document = stack.upload("pets.txt", "The office rabbit is called Hanswurst and eats parsley.")
    question = "What is the name of the office rabbit?"
    assert "Hanswurst" in stack.ask(question)["answer"]
    with stack.client() as client:
        assert client.delete(f"/v1/documents/{document['id']}").is_success
        assert client.get(f"/v1/documents/{document['id']}").status_code == httpx.codes.NOT_FOUND
    assert stack.ask(question)["declined"]


def test_an_unreadable_file_fails_with_a_reason_and_stops_nothing(stack: Stack) -> None:
    document = stack.upload("noise.bin", bytes(range(256)) * 8)
    assert document["state"] == "failed"
    assert document["reason"]
    assert stack.is_ready()


def test_the_command_line_uploads_asks_and_searches(stack: Stack, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "garden.txt").write_text("The garden gate code of the Lisbon office is 4417.")
    (folder / "broken.bin").write_bytes(bytes(range(256)) * 9)
    uploaded = stack.cli("upload", "--json", str(folder))
    states = {
        Path(line["file"]).name: line["state"]
        for line in map(json.loads, uploaded.stdout.splitlines())
    }
    assert states == {"garden.txt": "indexed", "broken.bin": "failed"}
    assert uploaded.returncode == 1, uploaded.stderr
    asked = stack.cli("ask", "What is the garden gate code of the Lisbon office?")
    assert asked.returncode == 0, asked.stderr
    assert "4417" in asked.stdout
    assert "[1] garden.txt" in asked.stdout
    found = json.loads(stack.cli("search", "--json", "garden gate Lisbon").stdout)
    assert found["hits"][0]["document_name"] == "garden.txt"
    assert stack.cli("status").returncode == 0
    assert stack.cli("ask", "--json", "Who won the chess match on Mars?").returncode == 5


def test_a_killed_service_comes_back_and_no_work_is_lost(stack: Stack) -> None:
    before = stack.processes()
    names = ["ingest", "parser", "chunker", "indexer", "orchestrator", "executor", "gateway"]
    assert set(names) <= set(before)
    with stack.client() as client:
        for number, name in enumerate(names):
            content = f"Memo {number}: the {name} memo says that box {number + 100} is green."
            accepted = client.post("/v1/documents", files={"file": (f"{name}.txt", content)})
            assert accepted.is_success
            os.kill(before[name], signal.SIGKILL)
            wait_until(stack.is_ready, f"ready again after the {name} was killed")
            assert stack.finished(accepted.json()["id"])["state"] == "indexed"
    turn = stack.ask("Which box does the gateway memo call green?")
    assert turn["state"] == "done"
    assert "106" in turn["answer"]


def test_a_restarted_broker_loses_nothing(stack: Stack) -> None:
    broker = stack.processes()["broker"]
    content = "The spare key of the archive hangs behind the blue map."
    with stack.client() as client:
        accepted = client.post("/v1/documents", files={"file": ("key.txt", content)}).json()
        os.kill(broker, signal.SIGKILL)
        assert stack.finished(accepted["id"])["state"] == "indexed"
    wait_until(stack.is_ready, "ready with the new broker")
    assert "blue map" in stack.ask("Where does the spare key of the archive hang?")["answer"]


def test_the_vector_store_never_hangs_up_on_its_clients(stack: Stack) -> None:
    logs = {log.name: log.read_text() for log in (stack.home / "logs").glob("*.log")}
    assert "indexer.log" in logs
    assert [name for name, text in logs.items() if "too_many_pings" in text] == []


def test_stop_frees_everything_and_the_next_start_goes_on(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "home")
    stack.start()
    stack.upload("note.txt", "The safe of the Oslo office opens with the number 90210.")
    family = stack.family()
    names = [f"memo-{n}.txt" for n in range(12)]
    with stack.client() as client:
        for name in names:  # some of them are in the middle when everything stops
            files = {"file": (name, f"The {name} is about the harbour of Oslo.")}
            assert client.post("/v1/documents", files=files).is_success
    assert stack.stop() == 0
    assert not any(process.is_running() for process in family)
    second = Stack(tmp_path / "home")
    second.ports, second.environment, second.url = stack.ports, stack.environment, stack.url
    second.start()
    assert "90210" in second.ask("Which number opens the safe of the Oslo office?")["answer"]
    with second.client() as client:
        listed = client.get("/v1/documents", params={"limit": 50}).json()["items"]
    assert {each["name"] for each in listed} == {"note.txt", *names}
    assert {second.finished(each["id"])["state"] for each in listed} == {"indexed"}
    family = second.family()
    assert second.process is not None
    second.process.kill()
    second.process.wait()
    wait_until(
        lambda: all(is_gone(process.pid) for process in family),
        "nothing left after the supervisor was killed",
        30,
    )
